import contextlib
import random
from datetime import UTC, date, datetime, timedelta

import pytest

from redis_kit.core import connections
from redis_kit.core.errors import KeyConflict, RedisUnavailable
from redis_kit.signins.database import record
from redis_kit.signins.database.models import SignInDay
from redis_kit.signins.database.record import Rebuild
from redis_kit.signins.users import SignInUser
from tests.app.models import User
from tests.signins.people import numbers, saved
from tests.signins.support.crowd import Crowd

pytestmark = pytest.mark.django_db

TODAY = datetime.now(UTC).date()
DAY = timedelta(days=1)


@pytest.fixture
def recorded(kit):
    kit.options(SIGNINS={"RECORD": True, "MAKE_UPS": 31, "FREEZES": 31})
    return kit


def wipe(kit):
    kit.client.delete(*kit.keys())


def rebuild():
    Rebuild(User).add(list(record.days_of("app.user")))


def everything(numbers, day=TODAY):
    """Return all answers about users."""
    users = [saved(number) for number in numbers]
    months = [(month.year, month.month) for month in (day - timedelta(31), day)]
    calendars = [[user.sign_in_calendar(*month) for month in months] for user in users]
    grid = User.sign_ins.retention_grid(day - timedelta(25), day)
    return (
        [user.sign_in_summary() for user in users],
        [user.sign_in_count(date(2000, 1, 1)) for user in users],
        calendars,
        User.sign_ins.monthly_active(day - timedelta(25), day),
        grid,
        sorted(User.sign_ins.leaderboard(1000)),
    )


def test_wiped_server_has_all_days_and_streaks_again(recorded):
    crowd, chance = Crowd(40, 20).sign_in(), random.Random(5)
    saved(3).sign_in(date(2024, 2, 29))
    saved(3).sign_in(date(2023, 12, 31))
    for number in crowd.days:
        for method in (saved(number).make_up_sign_in, saved(number).freeze_sign_ins):
            method(TODAY - DAY * chance.randrange(1, 8))
    before = everything(crowd.days)
    wipe(recorded)
    assert everything(crowd.days) != before
    rebuild()
    assert everything(crowd.days) == before
    rebuild()
    assert everything(crowd.days) == before
    assert saved(1).sign_in_summary().total + 1 >= saved(1).sign_in().total


@pytest.mark.parametrize("covered", [0, 1, 40, 366])
def test_covered_days_are_restored(recorded, covered):
    chance, id, first = random.Random(covered), str(next(numbers)), date(2024, 1, 1)
    numbers_of_days = chance.sample(range(366), covered)
    days = {first + DAY * at: chance.choice(["make_up", "freeze"]) for at in numbers_of_days}
    for _ in range(2):
        Rebuild(User).add([(id, list(days.items()))])
        months = [saved(id).sign_in_calendar(2024, month) for month in range(1, 13)]
        shown = {day.date: day for month in months for day in month.days if day.made_up or day.frozen}
        assert {day: "freeze" if shown[day].frozen else "make_up" for day in shown} == days
        assert sum(recorded.client.strlen(key) for key in recorded.keys() if ":year:" in key) <= 92


def test_rebuild_keeps_what_redis_has_and_tells_no_milestone_again(recorded):
    user = saved(next(numbers))
    for ago in range(7, 0, -1):
        user.sign_in(TODAY - DAY * ago)
    wipe(recorded)
    assert user.sign_in().streak == 1
    rebuild()
    assert user.sign_in_summary().streak == 8
    assert not user.sign_in().new
    assert user.sign_in(TODAY - DAY * 8).milestones == []


def test_day_that_redis_did_not_take_is_recorded_and_restored_later(recorded, twin):
    user = saved(next(numbers))
    user.sign_in(TODAY - DAY)
    options = recorded.settings.REDIS_KIT
    recorded.settings.REDIS_KIT = {**options, "CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1/0"}}}
    with pytest.raises(RedisUnavailable):
        user.sign_in()
    recorded.settings.REDIS_KIT = options
    rebuild()
    assert user.sign_in_summary().streak == 2


def test_day_has_one_row_with_its_latest_kind(recorded):
    user = saved(next(numbers))
    user.freeze_sign_ins(TODAY)
    for _ in range(2):
        user.sign_in()
    assert list(SignInDay.objects.values_list("day", "kind")) == [(TODAY, "sign_in")]
    user.erase_sign_ins()
    assert not SignInDay.objects.exists()


def test_nothing_is_written_without_the_setting(kit, user):
    user.sign_in()
    assert not SignInDay.objects.exists()


def test_all_days_of_redis_are_listed(kit):
    crowd = Crowd(130, 20).sign_in()
    listed = dict(user for batch in Rebuild(User).users() for user in batch)
    assert {int(id): {day for day, _ in days} for id, days in listed.items()} == crowd.days


def test_day_that_is_frozen_between_reading_and_storing_stays(recorded):
    user, adding = saved(1), Rebuild(User)
    user.sign_in(TODAY - 9 * DAY)
    user.freeze_sign_ins(TODAY - 3 * DAY, token="order 7")
    steps, client = adding._add([("1", [(TODAY - 20 * DAY, "sign_in")])]), connections.client("default")
    step, reads = steps.send(None), 0
    with contextlib.suppress(StopIteration):
        while True:
            reply, reads = step.run(client), reads + 1
            if reads == 1:  # the state does not change: the token is the same, and the day is before the other
                assert user.freeze_sign_ins(TODAY - 6 * DAY, token="order 7").new
            step = steps.send(reply)
    days = dict(next(iter(adding.days_of(["1"])))[1])
    assert (days[TODAY - 6 * DAY], days[TODAY - 20 * DAY]) == ("freeze", "sign_in")


def test_year_of_another_type_is_a_conflict_and_stays(recorded):
    saved(1).sign_in(TODAY)
    key = SignInUser(User, 1).year_key(2025)
    recorded.client.rpush(key, "another program's")
    with pytest.raises(KeyConflict):
        Rebuild(User).add([("1", [(date(2025, 5, 5), "sign_in")])])
    assert recorded.client.lrange(key, 0, -1) == ["another program's"]
