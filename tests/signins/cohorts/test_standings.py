from datetime import timedelta

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.signins.cohorts.standings import Standing
from redis_kit.signins.days import today
from tests.app.models import User
from tests.signins.people import saved


def test_streaks_of_a_thousand_users_are_one_round_trip(crowd, trips):
    users = [saved(number) for number in range(1, 1001)]
    trips.clear()
    found = User.sign_ins.streaks(users)
    assert len(trips) == 1
    assert found == {number: crowd.streak(number, crowd.last) if number in crowd.days else 0 for number in found}
    assert len(found) == 1000


def test_leaderboard_has_the_longest_streaks_that_go_on(crowd, trips):
    streaks = {number: crowd.streak(number, crowd.last) for number in crowd.days}
    User.sign_ins.leaderboard()  # loads the script
    trips.clear()
    found = User.sign_ins.leaderboard(10)
    assert len(trips) == 1
    assert [one.streak for one in found] == sorted(streaks.values(), reverse=True)[:10]
    assert all(streaks[number] == streak for number, streak in found)
    assert len(User.sign_ins.leaderboard(1000)) == sum(map(bool, streaks.values()))


def test_leaderboard_and_risk_decay_by_themselves(kit):
    day = today()
    for ago in range(5):
        saved(1).sign_in(day - timedelta(ago))
        saved(2).sign_in(day - timedelta(ago + 1))
        saved(3).sign_in(day - timedelta(ago + 2))
    sign_ins = User.sign_ins
    assert sign_ins.leaderboard() == [Standing(1, 5), Standing(2, 5)]
    assert sign_ins.at_risk() == [Standing(2, 5)]
    assert sign_ins.leaderboard(day=day + timedelta(1)) == [Standing(1, 5)]
    assert sign_ins.at_risk(day=day + timedelta(1)) == [Standing(1, 5)]
    assert sign_ins.leaderboard(day=day + timedelta(2)) == sign_ins.at_risk(day=day + timedelta(2)) == []
    saved(2).sign_in()
    assert sign_ins.at_risk() == []


def test_users_at_risk_signed_in_yesterday_and_not_today(crowd, twin):
    day, risky = crowd.last, {}
    for number, days in crowd.days.items():
        if day not in days and day - timedelta(1) in days and (streak := crowd.streak(number, day)) >= 2:
            risky[number] = streak
    found = twin(User.sign_ins.at_risk, 2)
    assert dict(found) == risky
    assert [one.streak for one in found] == sorted(risky.values(), reverse=True)
    assert twin(User.sign_ins.count_at_risk, 2) == len(risky) > 3
    assert len(twin(User.sign_ins.at_risk, 2, limit=3)) == 3


def test_sorted_set_holds_only_streaks_of_the_last_days(kit):
    day = today()
    for number in range(200):
        saved(number).sign_in(day - timedelta(9))
    for number in range(200):
        saved(200 + number).sign_in(day)
    assert sum(kit.client.zcard(key) for key in kit.keys() if key.endswith("streaks")) == 200


@pytest.mark.parametrize(
    ("name", "wrong"), [("leaderboard", 0), ("leaderboard", 1001), ("at_risk", 0), ("at_risk", "3")]
)
def test_wrong_numbers_are_refused(kit, name, wrong):
    with pytest.raises(InvalidValue, match="whole number from 1 to"):
        getattr(User.sign_ins, name)(wrong)
