"""The grammar of rates."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redis_kit.core.values.rates import EXACT, MOST_RATES, parse
from redis_kit.throttling import InvalidRate, Rate

DAY = 86_400

VECTORS = [
    # Django REST framework and Ninja
    ("5/s", [(5, 1)]),
    ("10/sec", [(10, 1)]),
    ("10/second", [(10, 1)]),
    ("10/m", [(10, 60)]),
    ("10/min", [(10, 60)]),
    ("10/minute", [(10, 60)]),
    ("10/h", [(10, 3600)]),
    ("10/hour", [(10, 3600)]),
    ("10/d", [(10, DAY)]),
    ("10/day", [(10, DAY)]),
    ("10/30s", [(10, 30)]),
    ("1/20min", [(1, 1200)]),
    # django-ratelimit
    ("100/5m", [(100, 300)]),
    ("100/300", [(100, 300)]),
    ("15/5M", [(15, 300)]),
    ("0/s", [(0, 1)]),
    ((10, 60), [(10, 60)]),
    (None, []),
    # limits
    ("10 per hour", [(10, 3600)]),
    ("10 per 5 minutes", [(10, 300)]),
    ("10/2 hours", [(10, 7200)]),
    ("1 PER DAY", [(1, DAY)]),
    ("1/month", [(1, 30 * DAY)]),
    ("2 per 1 year", [(2, 365 * DAY)]),
    ("100/day, 500/7days", [(100, DAY), (500, 7 * DAY)]),
    ("5/m; 50/h", [(5, 60), (50, 3600)]),
    ("5/m|50/h", [(5, 60), (50, 3600)]),
    # the kit's own
    (" 10 / m ", [(10, 60)]),
    ("10/w", [(10, 7 * DAY)]),
    ("60/m burst 20", [(60, 60, 20)]),
    ("60/m BURST 90; 1000/d", [(60, 60, 90), (1000, DAY)]),
    ("1/10 burst 3", [(1, 10, 3)]),
    (["5/m", (50, 3600), Rate(500, DAY)], [(5, 60), (50, 3600), (500, DAY)]),
    (("5/m", "50/h"), [(5, 60), (50, 3600)]),
    (Rate(3, 0.5), [(3, 0.5)]),
    ("1/142years", [(1, 142 * 365 * DAY)]),
]

INVALID = [
    "",
    " ",
    "10",
    "10/",
    "/m",
    "10/x",
    "10/mm",
    "10/0s",
    "10/0",
    "-1/m",
    "+1/m",
    "1e9/s",
    "1.5/m",
    "10/1.5m",
    "10//m",
    "10/m/s",
    "10 m",
    "per m",
    "5/m;",
    ";5/m",
    "5/m;;50/h",
    "١٠/m",
    "１０/m",
    "10/𝗆",
    "10/\u212a",
    "10/m\x00",
    "10/m burst",
    "10/m burst 0",
    "10/m burst -1",
    "10/mburst 5",
    "0" * 100 + "1/s",
    "; ".join(["1/s"] * (MOST_RATES + 1)),
    b"10/m",
    10,
    True,
    10.0,
    [],
    (),
    [None],
    (10,),
    (10, 60, 5),
    (10, 0),
    (10, -60),
    (-1, 60),
    (10.5, 60),
    (True, 60),
    (10, math.nan),
    (10, math.inf),
    {"10/m"},
    {"rate": "10/m"},
    # too large to be counted in microseconds without losing digits
    f"{2**53}/s",
    "1000000001/s",
    "1/200year",
    f"1/d burst {10**6}",
    "1/143years",
    (10, 10**400),
    (10, 1e308),
]


@pytest.mark.parametrize(("text", "rates"), VECTORS)
def test_rate_is_read(text, rates):
    assert parse(text) == tuple(Rate(*rate) for rate in rates)


@pytest.mark.parametrize("text", INVALID, ids=lambda value: ascii(value)[:40])
def test_anything_else_is_refused_by_a_message_that_names_the_grammar(text):
    with pytest.raises(InvalidRate, match=r"Write a rate as '10/m'") as caught:
        parse(text)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "wrong", [(1, 1, 0), (5, 1, True), (5, 1, 1.5), ("5", 1), (5, "60"), (5, True), (5, 1e-9), (5, 1, -2), (-5, 1)]
)
def test_rate_checks_its_numbers(wrong):
    with pytest.raises(InvalidRate):
        Rate(*wrong)


def test_burst_is_the_limit_unless_given():
    assert Rate(5, 60).burst == 5
    assert Rate(5, 60, 1).burst == 1
    assert Rate(0, 60).burst == 0


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (Rate(5, 60), "5/m"),
        (Rate(15, 300), "15/5m"),
        (Rate(10, 90), "10/90s"),
        (Rate(1, 86_400, 3), "1/d burst 3"),
        (Rate(1, 604_800), "1/w"),
        (Rate(2, 0.5), "2/0.5s"),
    ],
)
def test_rate_is_written_short(rate, text):
    assert str(rate) == text


@given(st.integers(1, 10**9), st.integers(1, 10**8), st.integers(1, 10**6))
def test_what_is_written_is_read_back_and_every_number_is_exact(limit, period, burst):
    try:
        rate = Rate(limit, period, burst)
    except InvalidRate:
        assert Fraction(burst * period * 10**6, limit) > EXACT
        return
    assert parse(str(rate)) == (rate,)
    true, (drain, price) = Fraction(limit, period * 10**6), rate.exact
    assert burst * price <= EXACT + burst < 2**53
    if burst * true.denominator <= EXACT:
        assert Fraction(drain, price) == true
    else:
        assert true * (1 - Fraction(1, price)) <= Fraction(drain, price) <= true
