"""Every rate that another library reads is read alike here, or stands in a list of what differs and why."""

import re
from itertools import product

import pytest

from redis_kit.core.values.rates import parse
from redis_kit.throttling import InvalidRate

NUMBERS = ("10", "10_000", "1_0_0", "007", " 10", "10 ", "0", "+10", "-1", "1__0", "_10", "10_", "٣", "")
SEPARATORS = ("/", " / ", "/ ", " per ", "per", "//")
COUNTS = ("", "5", "1_0", " 5 ", "+5", "0", "٥")
UNITS = (
    *("", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h", "hr", "hour", "hours"),
    *("d", "day", "days", "w", "week", "month", "months", "year", "years", "M", "Day", "daily", "mouse", "m ", "x"),
)
SPELLINGS = ["".join(parts) for parts in product(NUMBERS, SEPARATORS, COUNTS, UNITS)]
YEAR = 365 / 360


def drf():
    theirs = pytest.importorskip("rest_framework.throttling").SimpleRateThrottle
    from redis_kit.throttling.drf import SimpleRateThrottle

    class Ours(SimpleRateThrottle):
        rate = "1/s"

    return lambda text: [theirs.parse_rate(theirs, text)], Ours().read


def ninja():
    theirs = pytest.importorskip("ninja.throttling").SimpleRateThrottle
    from redis_kit.throttling.ninja import SimpleRateThrottle

    return lambda text: [theirs("1/s").parse_rate(text)], SimpleRateThrottle("1/s").read


def django_ratelimit():
    core = pytest.importorskip("django_ratelimit.core")
    return lambda text: [core._split_rate(text)], parse


def limits():
    parse_many = pytest.importorskip("limits").parse_many
    return lambda text: [(one.amount, one.get_expiry()) for one in parse_many(text)], parse


def read(reader, text):
    """Return the rates as (limit, seconds), or None for what the reader refuses."""
    try:
        return [(one.limit, one.period) if hasattr(one, "period") else one for one in reader(text)]
    except (ValueError, KeyError, IndexError, AttributeError, InvalidRate):
        return None


def int_takes_more(text, theirs, ours):
    """Signs and digits of other scripts are no numbers of a rate here, nor is a period of 0 one."""
    return ours is None and ("+" in text or "-" in text or not text.isascii() or theirs[0][1] == 0)


def only_a_beginning(text, theirs, ours):
    """django-ratelimit reads the beginning of a text, a lower-case letter at most, and leaves the rest."""
    rest = text[re.match(r"\d+/\d*[smhd]?", text).end() :]
    return bool(rest) or text.endswith("/") or int_takes_more(text, theirs, ours)


def year_of_360_days_and_no_period_as_one(text, theirs, ours):
    """To limits a year has 360 days, and 0 seconds are one."""
    if ours is None and re.search(r"(?:/|per)\s*0", text):
        return True
    year = ours is not None and "year" in text and ours[0][1] == theirs[0][1] * YEAR
    return year or int_takes_more(text, theirs, ours)


@pytest.mark.parametrize(
    ("library", "differs"),
    [
        (drf, int_takes_more),
        (ninja, int_takes_more),
        (django_ratelimit, only_a_beginning),
        (limits, year_of_360_days_and_no_period_as_one),
    ],
    ids=lambda one: one.__name__,
)
def test_rates_of_other_libraries_read_alike_or_differ_for_a_stated_reason(library, differs):
    theirs, ours = library()
    found = [(text, rates, read(ours, text)) for text in SPELLINGS if (rates := read(theirs, text)) is not None]
    alike = [text for text, rates, own in found if own == rates]
    assert len(alike) >= 100
    assert [one for one in found if one[1] != one[2] and not differs(*one)] == []


@pytest.mark.parametrize("text", ["10_000/day", "1_000_000/d", "10/1_0m", "60/m burst 1_0"])
def test_underscores_group_digits(text):
    assert parse(text) == parse(text.replace("_", ""))


@pytest.mark.parametrize("text", ["_10/m", "10_/m", "1__0/m", "10/_5m", "10/5_m", "10/m burst _5", "_/m"])
def test_underscores_stand_between_digits_alone(text):
    with pytest.raises(InvalidRate, match="10_000/d"):
        parse(text)
