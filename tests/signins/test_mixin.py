import uuid
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, example, settings
from hypothesis import given as given_
from hypothesis import strategies as st

from redis_kit.core.errors import InvalidValue, KeyConflict, RedisUnavailable
from redis_kit.signins import SignInMixin, signed_in
from redis_kit.signins.days import Calendar
from redis_kit.signins.users import SignInUser
from tests.app.models import Device, User
from tests.signins.people import numbers, saved
from tests.signins.support.model import Model

TODAY = datetime.now(UTC).date()
given = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


# Days near each other, around borders of years and 29 February, so that streaks meet.
borders = st.sampled_from(
    [date(2023, 12, 28), date(2024, 2, 26), date(2024, 12, 26), TODAY - timedelta(10), date(2000, 1, 1)]
)
days = st.builds(lambda day, number: day + timedelta(number), borders, st.integers(0, 10))


@given
@given_(st.lists(days, max_size=60))
@example([date(2000, 1, 1), date(2000, 1, 2)])
@example([TODAY, TODAY - timedelta(2), TODAY - timedelta(1), TODAY])
def test_sign_ins_in_any_order_equal_a_set_of_days(kit, order):
    user, model = saved(next(numbers)), Model()
    for day in order:
        assert tuple(user.sign_in(day)) == model.sign_in(day)
    assert user.longest_sign_in_streak() == model.longest
    assert user.sign_in_streak() == model.streak(TODAY)
    assert user.sign_in_count() == len(model.signed)
    for day in order:
        assert user.signed_in_on(day)
        assert user.signed_in_on(day + timedelta(1)) == (day + timedelta(1) in model.signed)


@given
@given_(st.sets(days, max_size=30), st.tuples(days, days).map(sorted))
def test_count_and_calendar_equal_a_set_of_days(kit, signed, ends):
    user = saved(next(numbers))
    for day in signed:
        user.sign_in(day)
    start, end = ends
    assert user.sign_in_count(start, end) == sum(start <= day <= end for day in signed)
    found = user.sign_in_calendar(start.year, start.month)
    marked = [day.date for day in found.days if day.marked]
    assert marked == sorted(day for day in signed if (day.year, day.month) == (start.year, start.month))
    assert found.count == len(marked)


@pytest.mark.parametrize("hole", [date(2022, 6, 1), date(2023, 1, 1), date(2021, 11, 2), date(2024, 3, 1)])
def test_day_filled_into_a_streak_of_several_years_joins_both_ends(user, hole):
    first, last = date(2021, 11, 1), date(2024, 3, 1)
    length = (last - first).days + 1
    for number in range(length):
        if first + timedelta(number) != hole:
            user.sign_in(first + timedelta(number))
    before = user.longest_sign_in_streak()
    result = user.sign_in(hole)
    assert (result.new, result.streak, result.longest, result.total) == (True, length, length, length)
    assert before == max((hole - first).days, (last - hole).days)
    assert user.sign_in(last + timedelta(1)).streak == length + 1


def test_streak_ends_when_a_day_is_missed(user):
    user.sign_in(TODAY - timedelta(3))
    user.sign_in(TODAY - timedelta(2))
    assert user.sign_in_streak() == 0
    assert user.sign_in().streak == 1
    assert user.longest_sign_in_streak() == 2


def test_streak_of_yesterday_may_still_go_on(user):
    user.sign_in(TODAY - timedelta(1))
    assert user.sign_in_streak() == 1
    assert user.sign_in().streak == 2


def test_streak_survives_a_flight_over_the_date_line(kit, user):
    kit.options(SIGNINS={"TIMEZONE": "zone"})
    user.zone = "Pacific/Kiritimati"
    user.sign_in(datetime.now(UTC) - timedelta(days=1))
    there = user.sign_in()
    assert there.streak == 2
    user.zone = "Pacific/Pago_Pago"  # 25 hours behind
    assert user.sign_in_streak() == 2
    here = user.sign_in()
    assert here.day < there.day
    assert user.sign_in_count() == len({there.day - timedelta(1), there.day, here.day})


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["attribute", "function"])
def test_zone_that_is_not_loaded_is_read_by_each_method(kit, twin, kind):
    kit.options(SIGNINS={"TIMEZONE": "first_name" if kind == "attribute" else lambda user: user.first_name})
    pk = User.objects.create(first_name="Pacific/Kiritimati").pk

    def user():
        return User.objects.defer("first_name").get(pk=pk)

    day = datetime.now(ZoneInfo("Pacific/Kiritimati")).date()
    assert twin(user().sign_in).day == day
    assert twin(user().make_up_sign_in, day - timedelta(1)).streak == 2
    assert twin(user().freeze_sign_ins, day - timedelta(2)).new
    assert twin(user().sign_in_streak) == 2
    calendar = twin(user().sign_in_calendar, day.year, day.month)
    assert [each.date for each in calendar.days if each.is_today] == [day]
    assert twin(User.sign_ins.streaks, [user()]) == {pk: 2}


def test_milestone_is_reported_once(kit, user):
    kit.options(SIGNINS={"MILESTONES": [5, 2, 3]})
    results = [user.sign_in(TODAY - timedelta(number)).milestones for number in (20, 19, 18, 10, 9, 8, 7, 6)]
    assert results == [[], [2], [3], [], [], [], [], [5]]
    assert [user.sign_in(TODAY - timedelta(6)).milestones, user.sign_in(TODAY - timedelta(19)).milestones] == [[], []]


def test_day_that_joins_two_streaks_reaches_all_milestones_between(kit, user):
    kit.options(SIGNINS={"MILESTONES": [3, 4, 5, 6]})
    for number in (10, 9, 7, 6):
        user.sign_in(TODAY - timedelta(number))
    assert user.sign_in(TODAY - timedelta(8)).milestones == [3, 4, 5]


def test_sign_in_is_one_command(kit, user, commands):
    user.sign_in(TODAY - timedelta(1))
    with commands(kit) as sent:
        user.sign_in()
    assert sent == ["EVALSHA"]
    with commands(kit) as sent:
        user.sign_in_calendar(TODAY.year, TODAY.month)
    assert sent == ["BITFIELD_RO", "GETRANGE"]
    with commands(kit) as sent:
        user.sign_in_streak(), user.longest_sign_in_streak(), user.signed_in_on(TODAY)
    assert sent == ["GET", "GET", "GETBIT"]


def test_signal_is_sent_for_the_first_sign_in_of_a_day_only(user, twin):
    heard = []

    def hear(sender, instance, result, **kwargs):
        heard.append((sender, instance, result))

    signed_in.connect(hear)
    try:
        result = twin(user.sign_in)
        twin(user.sign_in)
    finally:
        signed_in.disconnect(hear)
    assert heard == [(User, user, result)]


@pytest.mark.parametrize("pk", [-1, 0, 2**63, 10**30, "abc", "a:b{c}*", "ü" * 200, uuid.uuid4()])
def test_any_primary_key_takes_little_memory(kit, pk):
    someone = saved(pk, Device)
    assert someone.sign_in().new
    assert not someone.sign_in().new
    keys = kit.keys()
    assert sum(map(kit.client.memory_usage, keys)) < 2000
    assert max(map(len, keys)) < 250


def test_primary_keys_and_models_do_not_share_days(kit):
    everyone = [saved(1), saved(11), saved(1, Device), saved("1:2", Device), saved("1%3A2", Device)]
    for number, someone in enumerate(everyone):
        someone.sign_in(date(2024, 1, 1 + number))
    assert [someone.sign_in_count() for someone in everyone] == [1] * len(everyone)
    assert [someone.signed_in_on(date(2024, 1, 1 + number)) for number, someone in enumerate(everyone)] == [True] * 5


@pytest.mark.parametrize("someone", [User(), User(pk=5), Device()])
def test_instance_that_is_not_saved_is_refused(kit, someone):
    with pytest.raises(InvalidValue, match="save"):
        someone.sign_in()
    assert kit.keys() == []


def test_wrong_arguments_are_refused_before_anything_is_sent(kit, user, commands):
    with commands(kit) as sent:
        for call in (
            lambda: user.sign_in(datetime(2026, 1, 1)),
            lambda: user.sign_in(TODAY + timedelta(3)),
            lambda: user.sign_in(token=b"form"),
            lambda: User.sign_ins.streaks([user, 2]),
            lambda: user.sign_in_calendar(2026, 13),
            lambda: user.sign_in_calendar(1999, 12),
            lambda: user.sign_in_calendar(2026, "1"),
            lambda: Calendar(2026, 11, [], TODAY, []).weeks(first_weekday=9),
            lambda: user.signed_in_on("2026-01-01"),
            lambda: user.sign_in_count(date(2026, 1, 2), date(2026, 1, 1)),
        ):
            with pytest.raises(InvalidValue):
                call()
    assert sent == []


def test_key_of_another_type_changes_nothing(kit, user):
    tag = SignInUser(User, user.pk).tag
    for part in (
        f"user:{user.pk}",
        "members",
        f"day:{TODAY}",
        f"year:{user.pk}:{TODAY.year}",
        f"first:{TODAY}",
        "streaks",
    ):
        key = f"{kit.prefix}:{{{tag}}}:{part}"
        kit.client.hset(key, "some", "thing")
        with pytest.raises(KeyConflict):
            user.sign_in()
        assert kit.keys() == [key]
        kit.client.delete(key)


def test_key_of_another_type_changes_nothing_of_a_known_user(kit, user):
    user.sign_in(TODAY - timedelta(1))
    tag = SignInUser(User, user.pk).tag
    for part in (f"day:{TODAY}", f"year:{user.pk}:{TODAY.year}", "streaks"):
        key = f"{kit.prefix}:{{{tag}}}:{part}"
        kept = kit.client.dump(key)
        kit.client.delete(key)
        kit.client.hset(key, "some", "thing")
        before = {name: kit.client.dump(name) for name in kit.keys()}
        with pytest.raises(KeyConflict):
            user.sign_in()
        assert {name: kit.client.dump(name) for name in kit.keys()} == before
        kit.client.delete(key)
        if kept:
            kit.client.restore(key, 0, kept)
    assert user.sign_in()[:4] == (True, 2, 2, 2)


def test_days_of_a_user_do_not_expire_but_the_days_bitmap_does(kit, user):
    user.sign_in()
    keys = kit.keys()
    kept = {key.split(":")[-1] if ":day:" in key else "own": kit.client.ttl(key) for key in keys}
    assert kept == {"own": -1, str(TODAY): pytest.approx(400 * 86_400, abs=5)}


def test_mixin_has_no_field_and_keeps_the_models_options():
    assert not issubclass(SignInMixin, User.__bases__[-1])
    assert str(User._meta.verbose_name) == "user"
    with pytest.raises(AttributeError, match="User"):
        _ = saved(1).sign_ins


def test_outage_raises_redis_unavailable(user, settings):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1/0"}}}
    with pytest.raises(RedisUnavailable):
        user.sign_in()
