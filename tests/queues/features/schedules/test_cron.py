"""The times of schedules: intervals, cron expressions, and the changes of clocks."""

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redis_kit.queues import InvalidSchedule
from redis_kit.queues.features.schedules import cron
from redis_kit.queues.features.schedules.cron import Cron
from redis_kit.queues.features.schedules.definition import Definition, share

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Pacific/Apia", "UTC")
EXPRESSIONS = ("30 2 * * *", "0 0 * * *", "*/20 * * * *", "15 */3 * * *", "0 1,2,3 * * *", "0 4 L * *", "5 4 * * SUN")
DAYS = 2
MOMENTS = st.integers(
    int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()), int(datetime(2027, 1, 1, tzinfo=UTC).timestamp())
)


def ms(*parts, zone="Europe/Berlin", fold=0):
    return round(datetime(*parts, tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000)


def shown(moment, zone="Europe/Berlin"):
    return datetime.fromtimestamp(moment / 1000, ZoneInfo(zone)).isoformat()


@given(MOMENTS, st.integers(100, 10**9), st.integers(1, 10**12))
def test_interval_counts_real_time_from_its_anchor(moment, interval, anchor):
    times, moment = Definition("x", "t", every=interval, start=anchor), moment * 1000
    first = times.after(moment)
    assert moment < first <= moment + interval
    assert (first - anchor) % interval == 0
    assert times.latest(0, first, 3) == [first - 2 * interval, first - interval, first]
    assert times.latest(0, first - 1, 1) == [first - interval]


def test_one_time_comes_once():
    once = Definition("x", "t", at=500)
    assert (once.after(499), once.after(500)) == (500, None)
    assert (once.latest(0, 499, 9), once.latest(0, 500, 9)) == ([], [500])


@settings(max_examples=60)
@given(MOMENTS, st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES))
@example(int(datetime(2026, 3, 29, 0, 30, tzinfo=UTC).timestamp()), "30 2 * * *", "Europe/Berlin")
@example(int(datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()), "30 2 * * *", "Europe/Berlin")
@example(int(datetime(2026, 10, 25, 1, 10, tzinfo=UTC).timestamp()), "30 2 * * *", "Europe/Berlin")
@example(int(datetime(2026, 4, 4, 15, 10, tzinfo=UTC).timestamp()), "30 2 * * *", "Australia/Lord_Howe")
def test_times_of_cron_are_the_same_forwards_and_backwards(moment, expression, zone):
    times, moment = Cron(expression, zone), moment * 1000
    ahead = [times.after(moment)]
    while len(ahead) < 4:
        ahead.append(times.after(ahead[-1]))
    assert moment < ahead[0]
    assert ahead == sorted(set(ahead))
    definition = Definition("x", "t", cron=expression, timezone=zone)
    assert definition.latest(0, ahead[-1], 4) == ahead
    assert definition.latest(0, ahead[-1] - 1, 2) == ahead[1:3]


def field(most, least=0):
    number = st.integers(least, most).map(str)
    steps = st.integers(2, most).map("*/{}".format)
    return st.one_of(st.just("*"), number, steps, st.lists(number, min_size=2, max_size=4).map(",".join))


def matches(text, value, least):
    if text.startswith("*"):
        return (value - least) % int(text[2:] or 1) == 0
    return str(value) in text.split(",")


@cache
def minutes_of(zone, start):
    """Each minute of two days: when it is, what clocks show, and the minutes that they have skipped before it."""
    found, before = [], datetime.fromtimestamp(start - 60, ZoneInfo(zone)).replace(tzinfo=None)
    for moment in range(start, start + DAYS * 86_400, 60):
        clock = datetime.fromtimestamp(moment, ZoneInfo(zone))
        passed = (clock.replace(tzinfo=None) - before) // timedelta(minutes=1)
        found.append((moment * 1000, clock, [before + timedelta(minutes=each) for each in range(1, passed)]))
        before = clock.replace(tzinfo=None)
    return found


def shown_by_clocks(expression, zone, start):
    """The times of an expression, found by a look at the clocks in each minute."""
    minute, hour, day, _, _ = expression.split()
    fixed = not (minute.startswith("*") or hour.startswith("*"))

    def fits(clock):
        return matches(minute, clock.minute, 0) and matches(hour, clock.hour, 0) and matches(day, clock.day, 1)

    return [
        moment
        for moment, clock, skipped in minutes_of(zone, start)
        if (fits(clock) and not (fixed and clock.fold)) or (fixed and any(map(fits, skipped)))
    ]


CHANGES = [
    *(("Australia/Lord_Howe", 2026, 10, 3), ("Australia/Lord_Howe", 2026, 4, 4), ("Europe/Berlin", 2026, 3, 28)),
    *(("Europe/Berlin", 2026, 10, 24), ("Antarctica/Troll", 2026, 3, 28), ("Antarctica/Troll", 2026, 10, 24)),
    *(("Africa/Cairo", 2026, 4, 23), ("Africa/Cairo", 2026, 10, 29), ("America/Santiago", 2026, 9, 5)),
    *(("America/Santiago", 2026, 4, 4), ("Pacific/Apia", 2011, 12, 29), ("America/St_Johns", 2026, 11, 1)),
    *(("Asia/Kathmandu", 2026, 5, 1), ("UTC", 2026, 5, 1)),
]


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(CHANGES), field(59), field(23), st.sampled_from(["*", "*", "*/2", "1,4,25,30"]))
@example(CHANGES[0], "*/17", "11", "*")
@example(CHANGES[0], "54", "*", "*")
@example(CHANGES[1], "13", "*/2", "*")
@example(CHANGES[0], "*", "*", "*")
@example(CHANGES[2], "*/30", "2", "*")
@example(CHANGES[1], "10,20,45", "0,1", "*")
@example(CHANGES[2], "10,20,45", "2,3", "*")
def test_ticks_are_those_of_a_look_at_the_clocks_in_each_minute(change, minute, hour, day):
    zone, *date = change
    times, start = Cron(f"{minute} {hour} {day} * *", zone), int(datetime(*date, tzinfo=UTC).timestamp())
    expected = shown_by_clocks(times.expression, zone, start)
    found, moment = [], start * 1000 - 1
    while (moment := times.after(moment)) < (start + DAYS * 86_400) * 1000:
        found.append(moment)
    assert found == expected
    definition = Definition("x", "t", cron=times.expression, timezone=zone)
    for place in range(0, len(found), 1 + len(found) // 20):
        assert definition.latest(start * 1000 - 1, found[place] + 30_000, 9) == found[: place + 1][-9:]


@given(st.sampled_from(ZONES[:-1]), st.integers(0, 364), st.integers(0, 23), st.integers(0, 59))
@settings(max_examples=60)
def test_daily_time_comes_once_on_each_day(zone, day, hour, minute):
    times, date = Cron(f"{minute} {hour} * * *", zone), datetime(2026, 1, 1) + timedelta(day)
    found = [times.after(ms(date.year, date.month, date.day, zone=zone) - 1)]
    found.append(times.after(found[0]))
    days = [datetime.fromtimestamp(each / 1000, ZoneInfo(zone)).date() for each in found]
    assert days == [date.date(), (date + timedelta(1)).date()]


def test_time_that_the_clocks_skip_is_at_the_first_moment_after():
    times = Cron("30 2 * * *", "Europe/Berlin")
    first = times.after(ms(2026, 3, 28, 12))
    assert shown(first) == "2026-03-29T03:00:00+02:00"
    assert shown(times.after(first)) == "2026-03-30T02:30:00+02:00"


def test_time_that_comes_twice_counts_once():
    times = Cron("30 2 * * *", "Europe/Berlin")
    first = times.after(ms(2026, 10, 24, 12))
    assert shown(first) == "2026-10-25T02:30:00+02:00"
    assert shown(times.after(first)) == "2026-10-26T02:30:00+01:00"
    assert shown(times.after(ms(2026, 10, 25, 2, 10, fold=1))) == "2026-10-26T02:30:00+01:00"


def test_steps_go_on_through_both_hours_and_intervals_do_too():
    times = Cron("*/30 * * * *", "Europe/Berlin")
    moment, found = ms(2026, 10, 25, 1, 45), []
    for _ in range(4):
        moment = times.after(moment)
        found.append(shown(moment)[11:])
    assert found == ["02:00:00+02:00", "02:30:00+02:00", "02:00:00+01:00", "02:30:00+01:00"]
    day = Definition("x", "t", every=86_400_000, start=ms(2026, 10, 24, 12))
    assert shown(day.after(ms(2026, 10, 24, 12))) == "2026-10-25T11:00:00+01:00"


@pytest.mark.parametrize(
    "wrong",
    [
        "61 * * * *",
        "* * *",
        "",
        "a b c d e",
        "0 0 31 2 *",
        "*/0 * * * *",
        "0 0 L-3 * *",
        "٣ * * * *",
        "0 4 * * * *",
        "* * * * * *",
    ],
)
def test_wrong_expression_names_the_grammar_or_the_reason(wrong):
    with pytest.raises(InvalidSchedule, match=r"five fields|no time in the next 50 years") as caught:
        cron.check(wrong)
    assert caught.value.field == "cron"


@given(st.text(alphabet="0123456789*/,-L#ASUN ", max_size=20))
def test_any_text_is_an_expression_or_an_invalid_schedule(text):
    try:
        cron.check(text)
    except InvalidSchedule:
        return
    assert len(text.split()) == 5
    assert Cron(text, "UTC").after(0) > 0


def test_names_are_spread_over_an_interval():
    shares = sorted(share(f"task{number}", 1000) for number in range(2000))
    assert shares[0] >= 0
    assert shares[-1] < 1000
    assert [shares[at] // 100 for at in (100, 500, 1050, 1900)] == [0, 2, 5, 9]
    assert share("x", 0) == 0
