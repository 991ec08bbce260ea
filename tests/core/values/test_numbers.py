from decimal import Decimal

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.core.values.numbers import seconds, whole_number


@pytest.mark.parametrize("value", [1, 1000])
def test_whole_number_of_the_range_is_returned(value):
    assert whole_number("limit", value, (1, 1000)) == value


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0"), (1001, "1001"), (True, "True"), (1.0, "1.0"), ("1", "'1'"), (None, "None")]
)
def test_other_value_is_refused_with_the_range(value, shown):
    with pytest.raises(InvalidValue) as caught:
        whole_number("limit", value, (1, 1000))
    assert str(caught.value) == f"limit must be a whole number from 1 to 1,000, not {shown}."


def test_long_value_is_shortened():
    with pytest.raises(InvalidValue) as caught:
        whole_number("limit", "x" * 1000, (1, 2))
    assert len(str(caught.value)) < 150


def test_seconds_are_a_float():
    assert [type(seconds("timeout", value, (0, 10))) for value in (0, 2.5, 10)] == [float] * 3


@pytest.mark.parametrize("value", [-0.1, 10.1, float("nan"), float("inf"), False, "5", Decimal(5), None])
def test_other_seconds_are_refused_with_the_range(value):
    with pytest.raises(InvalidValue, match=r"^timeout must be a number of seconds from 0 to 10, not "):
        seconds("timeout", value, (0, 10))
