from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redis_kit.core.errors import InvalidValue
from redis_kit.signins.days import today
from tests.app.models import Device, User
from tests.signins.people import saved


def leaves():
    at = st.integers(0, 19)
    return st.builds(
        lambda kind, one, other: (kind, *sorted((one, other))), st.sampled_from(["on", "first_on"]), at, at
    )


def joined():
    return st.recursive(
        leaves(),
        lambda inner: st.tuples(st.sampled_from("&|"), inner, inner) | st.tuples(st.just("~"), inner),
        max_leaves=5,
    )


def value(expression, crowd, source):
    """Return an expression as a segment of the kit, or as a set of the crowd."""
    match expression:
        case "~", inner:
            found = value(inner, crowd, source)
            return crowd.days.keys() - found if isinstance(found, set) else ~found
        case "&", one, other:
            return value(one, crowd, source) & value(other, crowd, source)
        case "|", one, other:
            return value(one, crowd, source) | value(other, crowd, source)
        case kind, start, end:
            return getattr(source, kind)(crowd.first + timedelta(start), crowd.first + timedelta(end))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(joined())
def test_segments_are_those_of_sets(crowd, expression):
    found, expected = value(expression, crowd, User.sign_ins), value(expression, crowd, crowd)
    assert found.count() == len(expected)
    assert set(found.ids()) == expected


def test_funnel_is_one_round_trip(crowd, trips, twin):
    sign_ins, day = User.sign_ins, crowd.first + timedelta(5)
    new, back = sign_ins.first_on(day), sign_ins.on(day + timedelta(1), day + timedelta(7))
    (new & back).count()  # the server knows the script from now on
    trips.clear()
    count = twin((new & back).count)
    assert len(trips) <= 1
    assert count == len(crowd.first_on(day) & crowd.on(day + timedelta(1), day + timedelta(7)))
    assert len(twin((new | back).ids, 5)) == 5


@pytest.mark.django_db
def test_erased_users_take_no_place_in_a_list_of_limited_length(kit):
    for number in range(1, 32):
        saved(number).sign_in()
    for number in range(1, 16):
        saved(number).erase_sign_ins()
    for segment in (User.sign_ins.on(today()), ~User.sign_ins.on(today() - timedelta(1))):
        assert set(segment.ids(limit=16)) == set(range(16, 32))
        assert len(segment.ids(limit=3)) == 3


@pytest.mark.parametrize("limit", [0, -1, 2.5, None])
def test_limit_of_a_list_is_a_number(kit, limit):
    with pytest.raises(InvalidValue, match="limit must be a whole number from 1"):
        User.sign_ins.on(today()).ids(limit=limit)


@pytest.mark.django_db
def test_erased_user_is_in_no_list_and_not_among_the_others(kit):
    day = today()
    for number in range(1, 40):
        saved(number).sign_in()
    assert saved(7).erase_sign_ins()
    assert not saved(7).erase_sign_ins()
    assert saved(7).sign_in_count() == saved(7).sign_in_summary().total == 0
    assert 7 not in User.sign_ins.on(day).ids()
    assert (~User.sign_ins.on(day - timedelta(1))).count() == 38
    assert 7 not in dict(User.sign_ins.leaderboard(100))
    assert not any(":7" in key for key in kit.keys())
    assert saved(7).sign_in().total == 1


def test_segments_of_two_models_are_not_joined(kit):
    with pytest.raises(InvalidValue, match="same model"):
        User.sign_ins.on(today()) & Device.sign_ins.on(today())
