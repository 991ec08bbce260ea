import re
import uuid
from datetime import UTC, date, datetime, timedelta

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.signins.activity import Standing
from redis_kit.signins.days import today
from tests.app.models import Device, User
from tests.signins.people import saved

TODAY = datetime.now(UTC).date()


def test_each_day_counts_every_user_once(kit):
    expected = {}
    for number in range(200):
        for ago in range(number % 5):
            saved(number).sign_in(TODAY - timedelta(ago))
            saved(number).sign_in(TODAY - timedelta(ago))
            expected[ago] = expected.get(ago, 0) + 1
    assert User.sign_ins.active() == expected[0] == 160
    found = User.sign_ins.daily_active(TODAY - timedelta(4), TODAY)
    assert [(TODAY - one.day).days for one in found] == [4, 3, 2, 1, 0]
    assert [one.users for one in found] == [0, 40, 80, 120, 160]


def test_primary_keys_that_are_not_numbers_take_one_bit_each(kit):
    for _ in range(500):
        saved(uuid.uuid4(), Device).sign_in()
    assert Device.sign_ins.active(TODAY) == 500
    assert User.sign_ins.active(TODAY) == 0
    maps = list(filter(re.compile(":day:").search, kit.keys()))
    assert len(maps) == 16
    assert sum(kit.client.strlen(key) for key in maps) < 120


def test_range_of_a_year_is_read_at_once(kit, commands):
    saved(7).sign_in(date(2024, 2, 29))
    User.sign_ins.daily_active(date(2024, 1, 1), date(2024, 12, 31))
    with commands(kit) as sent:
        found = User.sign_ins.daily_active(date(2024, 1, 1), date(2024, 12, 31))
    assert sum(one.users for one in found) == 1
    assert found[59] == (date(2024, 2, 29), 1)
    assert sent == ["EVALSHA"] * 16  # one for each bucket


def test_wrong_ranges_are_refused(kit):
    for start, end in ((TODAY, TODAY - timedelta(1)), (TODAY - timedelta(366), TODAY), ("2026-01-01", TODAY)):
        with pytest.raises(InvalidValue):
            User.sign_ins.daily_active(start, end)


@pytest.mark.parametrize(("name", "window"), [("daily_active", 1), ("weekly_active", 7), ("monthly_active", 30)])
def test_each_user_counts_once_in_a_window(crowd, trips, name, window):
    User.sign_ins.active()  # loads the script
    trips.clear()
    found = getattr(User.sign_ins, name)(crowd.last - timedelta(9), crowd.last)
    assert len(trips) == 1
    assert [one.day for one in found] == [crowd.last - timedelta(ago) for ago in range(9, -1, -1)]
    assert [one.users for one in found] == [len(crowd.on(day - timedelta(window - 1), day)) for day, _ in found]


def test_nothing_is_written_on_the_server(crowd, kit):
    def written():
        return kit.client.info("persistence")["rdb_changes_since_last_save"]

    before = written()
    User.sign_ins.monthly_active(crowd.first, crowd.last)
    User.sign_ins.daily_active(crowd.first, crowd.last)
    assert written() == before


def test_range_of_over_a_year_is_refused(kit):
    with pytest.raises(InvalidValue, match="366"):
        User.sign_ins.weekly_active(date(2025, 1, 1), date(2026, 1, 2))


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize("period", [1, 7])
def test_grid_is_that_of_sets(crowd, trips, rolling, period):
    trips.clear()
    grid = User.sign_ins.retention_grid(crowd.first, crowd.last, period=period, rolling=rolling)
    assert len(trips) == 2
    assert [cohort.day for cohort in grid] == [crowd.first + timedelta(at) for at in range(0, 20, period)]
    for cohort in grid:
        users = crowd.first_on(cohort.day, cohort.day + timedelta(period - 1))
        starts = [cohort.day + timedelta(at) for at in range(0, (crowd.last - cohort.day).days + 1, period)]
        ends = [crowd.last if rolling else start + timedelta(period - 1) for start in starts]
        expected = [len(users & crowd.on(start, end)) for start, end in zip(starts, ends, strict=True)]
        assert (cohort.size, cohort.retained, cohort.partial) == (len(users), expected, True)


def test_one_cohort_is_followed_until_today(crowd, twin):
    day = crowd.last - timedelta(9)
    cohort = twin(User.sign_ins.retention, day, 5)
    assert cohort.size == cohort.retained[0] == len(crowd.first_on(day)) > 0
    assert len(cohort.retained) == 6
    assert len(twin(User.sign_ins.retention, day, 30).retained) == 10


@pytest.mark.parametrize(
    ("length", "until", "period", "partial"),
    [(1, 14, 7, False), (1, 15, 7, True), (15, 15, 7, True), (1, 9, 1, False), (1, 0, 1, True)],
)
def test_last_period_that_is_not_all_there_is_partial(kit, length, until, period, partial):
    start = today() - timedelta(30)
    last = start + timedelta(until - 1) if until else today()
    grid = User.sign_ins.retention_grid(start, start + timedelta(length - 1), until=last, period=period)
    assert {cohort.partial for cohort in grid} == {partial}


def test_earlier_day_moves_a_user_to_another_cohort(kit):
    from tests.signins.people import saved

    day = date(2026, 3, 10)
    saved(1).sign_in(day)
    saved(1).sign_in(day - timedelta(1))
    sign_ins = User.sign_ins
    assert (sign_ins.first_on(day).count(), sign_ins.first_on(day - timedelta(1)).count()) == (0, 1)
    saved(1).sign_in(date(2024, 1, 1))
    assert (sign_ins.first_on(day - timedelta(1)).count(), sign_ins.first_on(date(2024, 1, 1)).count()) == (0, 1)


@pytest.mark.parametrize("wrong", [{"period": 2}, {"period": True}, {"until": "2026-01-01"}])
def test_wrong_questions_are_refused(kit, wrong):
    with pytest.raises(InvalidValue):
        User.sign_ins.retention_grid(date(2026, 1, 1), date(2026, 1, 5), **wrong)
    with pytest.raises(InvalidValue, match="number"):
        User.sign_ins.retention(date(2026, 1, 1), 0)


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
