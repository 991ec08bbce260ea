"""Which ticks run now: on time, late, missed, and while a schedule is off."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redis_kit.queues.features.schedules.definition import LATE, Definition, share

HOUR = 3_600_000


def hourly(**more):
    return Definition("report", "shop.tasks.report", **{"every": HOUR, "start": 10 * HOUR, **more})


def test_new_schedule_begins_with_the_next_tick():
    made = hourly().plan(None, 20 * HOUR + 5)
    assert made == ([], 0, 20 * HOUR + 5, 21 * HOUR, 21 * HOUR)


def test_tick_runs_once_when_it_is_due():
    assert hourly().plan(20 * HOUR, 21 * HOUR - 1).run == []
    made = hourly().plan(20 * HOUR, 21 * HOUR + 3)
    assert made == ([21 * HOUR], 0, 21 * HOUR, 22 * HOUR, 22 * HOUR)
    assert hourly().plan(made.last, 21 * HOUR + 4).run == []


@pytest.mark.parametrize(
    ("caught_up", "run", "missed"),
    [(0, [], 5), (1, [25], 4), (3, [23, 24, 25], 2), (100, [21, 22, 23, 24, 25], 0)],
)
def test_missed_ticks_run_as_far_as_the_policy_says(caught_up, run, missed):
    made = hourly(catch_up=caught_up).plan(20 * HOUR, 25 * HOUR + LATE + 1)
    assert made == ([tick * HOUR for tick in run], missed, 25 * HOUR, 26 * HOUR, 26 * HOUR)


def test_tick_of_the_last_minute_is_late_and_not_missed():
    assert hourly(catch_up=0).plan(20 * HOUR, 21 * HOUR + LATE).run == [21 * HOUR]
    assert hourly(catch_up=0).plan(20 * HOUR, 23 * HOUR + LATE) == ([23 * HOUR], 2, 23 * HOUR, 24 * HOUR, 24 * HOUR)


def test_long_downtime_of_a_short_interval_costs_few_steps():
    second = Definition("beat", "shop.tasks.beat", every=1000, start=1000, catch_up=2)
    made = second.plan(1000, 10**9)
    assert (made.run, made.missed, made.tick) == ([10**9 - 1000, 10**9], 10**6 - 3, 10**9 + 1000)
    minutely = Definition("cron", "shop.tasks.beat", cron="* * * * *", timezone="Europe/Berlin", catch_up=2)
    assert minutely.plan(60_000, 10**12 + 20_001).run == [10**12 - 40_000, 10**12 + 20_000]


def test_start_and_end_limit_the_ticks():
    limited = hourly(end=12 * HOUR)
    assert limited.plan(None, 5 * HOUR).due == 10 * HOUR
    assert limited.plan(10 * HOUR - 1, 10 * HOUR).run == [10 * HOUR]
    assert limited.plan(11 * HOUR, 12 * HOUR) == ([12 * HOUR], 0, 12 * HOUR, None, None)
    assert limited.plan(11 * HOUR, 30 * HOUR).run == [12 * HOUR]
    assert hourly(end=12 * HOUR, catch_up=100).plan(9 * HOUR, 30 * HOUR).run == [10 * HOUR, 11 * HOUR, 12 * HOUR]


def test_schedule_that_is_off_has_no_ticks():
    assert hourly(enabled=False).plan(20 * HOUR, 30 * HOUR) == ([], 0, 20 * HOUR, None, None)
    assert hourly(enabled=False).upcoming(0, 100 * HOUR, 9) == []


def test_one_time_runs_if_it_was_entered_a_moment_ago():
    once = Definition("once", "shop.tasks.report", at=20 * HOUR)
    assert once.plan(None, 19 * HOUR).due == 20 * HOUR
    assert once.plan(None, 20 * HOUR + 1000) == ([20 * HOUR], 0, 20 * HOUR, None, None)
    assert once.plan(None, 21 * HOUR).run == []
    assert once.plan(20 * HOUR, 20 * HOUR + 1).run == []


def test_upcoming_ticks_are_those_within_a_time():
    assert hourly().upcoming(20 * HOUR, 22 * HOUR, 9) == [21 * HOUR, 22 * HOUR]
    assert hourly().upcoming(20 * HOUR, 99 * HOUR, 1) == [21 * HOUR]
    assert hourly().upcoming(0, 10 * HOUR, 9) == [10 * HOUR]


@given(
    st.sampled_from([{"cron": "* * * * *"}, {"cron": "*/7 * * * *"}, {"every": 60_000}]),
    st.integers(0, 3_600_000),
    st.integers(0, 9),
    st.lists(st.integers(1, 1_000_000), min_size=1, max_size=20),
)
@example({"cron": "* * * * *"}, 1_800_000, 1, [720_000] * 20)
@settings(max_examples=60, deadline=None)
def test_next_tick_is_ahead_however_long_the_jitter_is(times, jitter, caught_up, steps):
    """As a release that allowed it may have stored it. A tick that has passed would be looked at without an end."""
    chosen = Definition("x", "t", **times, timezone="UTC", jitter=jitter, catch_up=caught_up)
    now = last = 10**12
    for step in steps:
        now += step
        made = chosen.plan(last, now)
        assert made.due is not None
        assert made.due > now
        assert made.tick == chosen.after(made.last)
        assert not any(tick + chosen.delay(tick) > now for tick in made.run)
        last = made.last


def test_tick_that_is_put_off_holds_up_those_after_it_and_is_counted():
    chosen = Definition("x", "t", every=1000, start=1, jitter=900)
    ticks = range(10**12 + 1, 10**12 + 60_000, 1000)
    now, last, over = 10**12, 10**12, 0
    while now < ticks[-1] + 1000:
        made = chosen.plan(last, now)
        last, over = made.last, over + len(made.run) + made.missed
        now = made.due
    assert over == len(ticks)


@given(
    st.integers(100, 10**7),
    st.integers(0, 99),
    st.integers(0, 4),
    st.lists(st.integers(0, 10**8), min_size=2, max_size=8),
)
def test_looks_at_any_moments_run_each_tick_at_most_once_and_late(interval, jitter, caught_up, steps):
    chosen = Definition("x", "t", every=interval, jitter=jitter, catch_up=caught_up)
    now, last, ran = 10**12, None, []
    for step in steps:
        now += step
        made = chosen.plan(last, now)
        assert len(made.run) <= max(1, caught_up)
        assert all(tick + chosen.delay(tick) <= now for tick in made.run)
        assert made.due is not None
        assert made.due > now
        assert made.tick == chosen.after(made.last)
        ran, last = ran + made.run, made.last
    assert ran == sorted(set(ran))
    assert all((tick - share(chosen.name, interval)) % interval == 0 for tick in ran)


@pytest.mark.parametrize("cron", ["* * * 1-6 *", "*/5 8-17 * 1-6 *", "* * 1 * *"])
def test_last_ticks_before_a_long_gap_are_found_without_looking_at_all(cron, monkeypatch):
    pytest.importorskip("cronsim")
    looks = []
    after = Definition.after
    monkeypatch.setattr(Definition, "after", lambda self, moment: looks.append(moment) or after(self, moment))
    days = [datetime(2026, *day, tzinfo=UTC).timestamp() * 1000 for day in ((1, 5), (12, 31))]
    definition = Definition("x", "t", cron=cron, timezone="UTC", catch_up=3)
    found = definition.latest(*map(int, days), 4)
    assert found == [tick for tick in found if tick <= days[1]]
    assert after(definition, found[-1]) > days[1]
    assert [after(definition, each) for each in found[:-1]] == found[1:]
    assert len(looks) < 1000
