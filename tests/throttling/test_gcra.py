"""The script against the definition, on the server's own clock."""

import time
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redis_kit.core import connections
from redis_kit.core.errors import KeyConflict
from redis_kit.throttling import Rate
from redis_kit.throttling.strategies import GCRA
from tests.throttling.model import Model

MILLISECOND = 0.001

periods = st.sampled_from([0.001, 0.003, 0.007, 0.02, 0.1, 1, 60, 3600, 86_400, 31_536_000])
rates = st.builds(Rate, st.integers(1, 50), periods, st.integers(1, 12))
calls = st.lists(
    st.tuples(st.integers(1, 4), st.booleans(), st.sampled_from([0, 0, 0.0005, 0.003])), min_size=1, max_size=25
)


class Caller:
    """One caller of a set of rates, asking the server directly."""

    def __init__(self, kit, rates, name="x"):
        self.client, self.strategy = connections.client(), GCRA(rates)
        self.keys = [f"{kit.prefix}:{{x}}:{name}", f"{kit.prefix}:{{x}}:minutes"]

    def ask(self, cost=1, *, consume=True):
        script = self.strategy.script(self.keys, [cost, int(consume), 0, *self.strategy.arguments])
        reply = script.run(self.client)
        return reply, self.strategy.decision(reply, cost)


@given(st.lists(rates, min_size=1, max_size=3), calls)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_decision_is_that_of_the_model(kit, rates, calls):
    caller, model = Caller(kit, rates), Model(rates)
    kit.client.delete(caller.keys[0])
    for cost, consume, pause in calls:
        time.sleep(pause)
        cost = min(cost, *(rate.burst for rate in rates))
        reply, decision = caller.ask(cost, consume=consume)
        allowed, figures = model.hit(reply[1], cost, consume=consume)
        assert decision.allowed == allowed
        chosen = figures[rates.index(decision.rate)]
        assert decision.remaining == chosen[0]
        if allowed:
            assert decision.remaining == min(one[0] for one in figures)
            assert decision.retry_after == 0
        else:
            assert decision.retry_after == pytest.approx(max(one[1] for one in figures), abs=MILLISECOND)
        assert decision.reset_after == pytest.approx(chosen[2], abs=MILLISECOND)
        assert decision.limit == decision.rate.burst


def test_burst_and_rate_are_never_exceeded_in_any_stretch(kit):
    rate = Rate(7, 0.05, 4)
    caller = Caller(kit, [rate])
    admitted = []
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        reply, decision = caller.ask()
        admitted += [reply[1]] if decision else []
    assert len(admitted) > 30
    speed = Fraction(rate.limit) / Fraction(50_000)  # calls in a microsecond
    for first, start in enumerate(admitted):
        for last in range(first, len(admitted)):
            assert last - first + 1 <= rate.burst + (admitted[last] - start) * speed


def test_refused_caller_passes_at_the_moment_it_was_told_and_not_a_millisecond_before(kit):
    caller = Caller(kit, [Rate(1, 0.05, 1)])
    caller.ask()
    reply, refused = caller.ask()
    due = reply[1] + round(refused.retry_after * 1_000_000)
    while True:
        reply, decision = caller.ask()
        assert decision.allowed == (reply[1] >= due)
        if decision:
            return


def test_refused_call_counts_against_no_rate(kit):
    caller = Caller(kit, [Rate(100, 3600), Rate(2, 3600)])
    for _ in range(10):
        caller.ask()
    levels = caller.ask(consume=False)[0][2:]
    assert [meter.remaining(level) for meter, level in zip(caller.strategy.meters, levels, strict=True)] == [98, 0]


def test_peek_writes_nothing(kit):
    caller = Caller(kit, [Rate(5, 60)])
    caller.ask(consume=False)
    assert kit.keys() == []


def test_state_expires_when_the_last_call_has_drained(kit):
    caller = Caller(kit, [Rate(10, 10), Rate(100, 1000)])
    for _ in range(3):
        caller.ask()
    assert 29_000 < kit.client.pttl(caller.keys[0]) <= 30_001
    assert 0 < kit.client.ttl(caller.keys[1]) <= 72 * 3600


def test_largest_rate_loses_no_digit(kit):
    rate = Rate(999_983, 4500, 999_983)  # a prime: one call is 4,500,000,000 units
    caller = Caller(kit, [rate])
    (meter,) = caller.strategy.meters
    assert meter.price == 4_500_000_000
    reply, decision = caller.ask(cost=999_982)
    assert decision
    assert reply[2] == 999_982 * meter.price
    assert kit.client.get(caller.keys[0]) == f"{reply[1]} {reply[2]}"
    second, _ = caller.ask()
    assert second[2] == reply[2] - (second[1] - reply[1]) * meter.drain + meter.price


def backwards(kit, caller, seconds):
    """Let the server's clock seem to have gone back since the last call."""
    stamp, *levels = kit.client.get(caller.keys[0]).split()
    kit.client.set(caller.keys[0], " ".join([str(int(stamp) + round(seconds * 10**6)), *levels]), px=100_000)


def test_clock_that_went_back_gives_nothing_back(kit):
    caller = Caller(kit, [Rate(10, 10)])
    for _ in range(10):
        caller.ask()
    backwards(kit, caller, 5)
    assert not caller.ask()[1]


@pytest.mark.parametrize("hours", [0.001, 2, 1000])
def test_clock_that_went_back_locks_nobody_out_for_longer_than_the_bucket_drains(kit, hours):
    caller = Caller(kit, [Rate(10, 1, 10)])
    for _ in range(10):
        caller.ask()
    backwards(kit, caller, hours * 3600)
    reply, decision = caller.ask()
    assert not decision
    assert decision.retry_after <= 0.1
    assert decision.reset_after <= 1
    stamp, _ = kit.client.get(caller.keys[0]).split()
    assert int(stamp) == reply[1]


def test_clock_that_jumps_ahead_admits_one_burst_more_and_no_more(kit):
    caller = Caller(kit, [Rate(10, 3600)])
    for _ in range(10):
        caller.ask()
    backwards(kit, caller, -7200)
    assert sum(bool(caller.ask()[1]) for _ in range(30)) == 10


@pytest.mark.parametrize("place", [0, 1])
def test_key_of_another_type_is_found_before_anything_is_written(kit, place):
    caller = Caller(kit, [Rate(10, 60)])
    kit.client.rpush(caller.keys[place], "foreign")
    with pytest.raises(KeyConflict):
        caller.ask()
    assert kit.keys() == [caller.keys[place]]


@pytest.mark.parametrize("rubbish", ["", "x", "1", "9" * 40, "-5 -5", "1 2 3 4 5 6"])
def test_rubbish_in_a_key_breaks_nothing(kit, rubbish):
    caller = Caller(kit, [Rate(10, 60)])
    kit.client.set(caller.keys[0], rubbish)
    _, decision = caller.ask()
    assert 0 <= decision.remaining <= 10
    assert decision.retry_after <= 60
