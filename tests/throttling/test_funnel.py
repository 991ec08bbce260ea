"""The five integers of CL.THROTTLE."""

import asyncio
import math

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.throttling import InvalidRate
from redis_kit.throttling.funnel import Funnel, afunnel, funnel


@pytest.fixture(params=["sync", "async"])
def pour(request):
    return funnel if request.param == "sync" else lambda *given, **more: asyncio.run(afunnel(*given, **more))


def test_funnel_answers_as_the_book_does(any_kit, pour):
    answers = [pour("laoqian:reply", 15, 30, 6000) for _ in range(17)]
    assert answers[0] == (0, 15, 14, -1, 200)
    assert [one.limited for one in answers] == [0] * 15 + [1] * 2
    assert [one.remaining for one in answers[:15]] == list(range(14, -1, -1))
    assert answers[15] == Funnel(1, 15, 0, answers[15].retry_after, answers[15].reset_after)
    assert 190 < answers[15].retry_after <= 200
    assert 2990 < answers[15].reset_after <= 3000


def test_quantity_is_poured_as_a_whole(kit, pour):
    assert pour("a", 10, 10, 100, 7)[:3] == (0, 10, 3)
    assert pour("a", 10, 10, 100, 5)[:4] == (1, 10, 3, 20)
    assert pour("a", 10, 10, 100, 3)[:3] == (0, 10, 0)


def test_quantity_of_nothing_only_looks(kit, pour):
    pour("a", 10, 10, 100, 4)
    assert pour("a", 10, 10, 100, 0) == pour("a", 10, 10, 100, 0) == (0, 10, 6, -1, 40)


@pytest.mark.parametrize("quantity", [9, -1, "a", True, 1.0])
def test_quantity_that_never_fits_is_named_as_such(kit, pour, quantity):
    with pytest.raises(InvalidValue, match="quantity must be a whole number from 0 to 5, the capacity, not"):
        pour("a", 5, 5, 100, quantity)


def test_keys_and_shapes_count_apart(kit, pour):
    pour("a", 1, 1, 100)
    assert pour("a", 1, 1, 100).limited
    assert not pour("b", 1, 1, 100).limited
    assert not pour("a", 2, 1, 100).limited


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0, 1, 1), InvalidRate),
        ((1, 0, 60), InvalidRate),
        ((1, 1, 0), InvalidRate),
        ((1, 1, math.inf), InvalidRate),
        ((5, 1, 1, 6), InvalidValue),
        ((5, 1, 1, -1), InvalidValue),
    ],
)
def test_arguments_are_checked(kit, pour, arguments, error):
    with pytest.raises(error):
        pour("a", *arguments)
    assert kit.keys() == []


def test_outage_is_answered_by_the_policy(own_kit, pour):
    own_kit.server.stop()
    assert pour("a", 1, 1, 100).limited == 0
    own_kit.options(THROTTLING={"ON_FAILURE": "closed"})
    assert pour("a", 1, 1, 100)[:4] == (1, 1, 0, 1)


@pytest.mark.parametrize("capacity", [0, -1, 1.5, True])
def test_wrong_capacity_is_named(kit, pour, capacity):
    with pytest.raises(InvalidRate, match=r"^capacity must be a whole number of 1 or more"):
        pour("f", capacity, 30, 60)
