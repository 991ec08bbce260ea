"""The bucket on the server's own clock."""

import time
from fractions import Fraction
from struct import pack, unpack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redis_kit.core.errors import KeyConflict
from redis_kit.throttling import Rate
from tests.throttling.support.identity import Identity
from tests.throttling.support.models.bucket import Bucket

MILLISECOND = 0.001

periods = st.sampled_from([0.001, 0.003, 0.007, 0.02, 0.1, 1, 60, 3600, 86_400, 31_536_000])
rates = st.builds(Rate, st.integers(1, 50), periods, st.integers(1, 12))
calls = st.lists(
    st.tuples(st.integers(1, 4), st.booleans(), st.sampled_from([0, 0, 0.0005, 0.003])), min_size=1, max_size=25
)


@given(st.lists(rates, min_size=1, max_size=3), calls)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_decision_is_that_of_the_model(kit, rates, calls):
    identity, model = Identity(rates), Bucket(rates)
    kit.client.delete(*identity.keys)
    for cost, consume, pause in calls:
        time.sleep(pause)
        cost = min(cost, *(rate.burst for rate in rates))
        outcome = identity.ask(cost, consume=consume)
        decision = outcome.decision
        allowed, stands = model.hit(outcome.stamp, cost, consume=consume)
        assert decision.allowed == allowed
        chosen = stands[rates.index(decision.rate)]
        assert decision.remaining == chosen.remaining
        if allowed:
            assert decision.remaining == min(one.remaining for one in stands)
            assert decision.retry_after == 0
        else:
            assert decision.retry_after == pytest.approx(max(one.wait for one in stands) / 1e6, abs=MILLISECOND)
        assert decision.reset_after == pytest.approx(chosen.reset / 1e6, abs=MILLISECOND)
        assert decision.limit == decision.rate.burst


def test_burst_and_rate_are_never_exceeded_in_any_stretch(kit):
    rate = Rate(7, 0.05, 4)
    identity = Identity([rate])
    admitted = []
    end = time.monotonic() + 0.4
    while time.monotonic() < end or len(admitted) <= 30:
        outcome = identity.ask()
        admitted += [outcome.stamp] if outcome.decision else []
    speed = Fraction(rate.limit) / Fraction(50_000)  # calls in a microsecond
    for first, start in enumerate(admitted):
        for last in range(first, len(admitted)):
            assert last - first + 1 <= rate.burst + (admitted[last] - start) * speed


def test_refused_identity_passes_exactly_after_retry_after(kit):
    identity = Identity([Rate(1, 0.05, 1)])
    identity.ask()
    refused = identity.ask()
    due = refused.stamp + round(refused.decision.retry_after * 1_000_000)
    while True:
        outcome = identity.ask()
        assert outcome.decision.allowed == (outcome.stamp >= due)
        if outcome.decision:
            return


def test_refused_call_counts_against_no_rate(kit):
    identity = Identity([Rate(100, 3600), Rate(2, 3600)])
    for _ in range(10):
        identity.ask()
    outcome = identity.ask(consume=False)
    states = [outcome.strategy.state(place, outcome.stamp, outcome.figures, 1) for place in (0, 1)]
    assert [remaining for _, _, remaining, _, _ in states] == [98, 0]


def test_peek_writes_nothing(kit):
    Identity([Rate(5, 60)]).ask(consume=False)
    assert kit.keys() == []


def test_state_expires_when_the_last_call_has_drained(kit):
    identity = Identity([Rate(10, 10), Rate(100, 1000)])
    for _ in range(3):
        identity.ask()
    assert 29_000 < kit.client.pttl(identity.state) <= 30_001
    assert 0 < kit.client.ttl(identity.latest) <= 90 * 86_400


def test_largest_rate_loses_no_digit(kit):
    rate = Rate(999_983, 4500, 999_983)  # a prime: one call is 4,500,000,000 units
    identity = Identity([rate])
    (bucket,) = identity.throttle.algorithm.buckets
    assert bucket.price == 4_500_000_000
    first = identity.ask(cost=999_982)
    assert first.decision
    assert first.figures == (999_982 * bucket.price,)
    assert stored(kit, identity) == (-1 - first.stamp, first.figures[0])
    second = identity.ask()
    drained = (second.stamp - first.stamp) * bucket.drain
    assert second.figures[0] == first.figures[0] - drained + bucket.price


def stored(kit, identity):
    """Return the numbers of a identity's state."""
    state = kit.client.dump(identity.state)  # as it is, since the client decodes text
    return unpack(f"<{state[1] // 8}d", state[2 : 2 + state[1]])


def backwards(kit, identity, seconds):
    """Let the server's clock seem to have gone back since the last call."""
    (bucket,) = identity.throttle.algorithm.buckets
    (end,) = stored(kit, identity)
    kit.client.set(identity.state, pack("<d", end + round(seconds * 10**6) * bucket.drain), px=100_000)


def test_clock_that_went_back_gives_nothing_back(kit):
    identity = Identity([Rate(10, 10)])
    for _ in range(10):
        identity.ask()
    backwards(kit, identity, 5)
    assert not identity.ask().decision


@pytest.mark.parametrize("hours", [0.001, 2, 1000])
def test_clock_set_back_blocks_nobody_longer_than_the_bucket_drains(kit, hours):
    identity = Identity([Rate(10, 1, 10)])
    for _ in range(10):
        identity.ask()
    backwards(kit, identity, hours * 3600)
    outcome = identity.ask()
    assert not outcome.decision
    assert outcome.decision.retry_after <= 0.1
    assert outcome.decision.reset_after <= 1
    assert stored(kit, identity) == (outcome.stamp + outcome.figures[0],)


def test_clock_that_jumps_ahead_allows_one_more_burst(kit):
    identity = Identity([Rate(10, 3600)])
    for _ in range(10):
        identity.ask()
    backwards(kit, identity, -7200)
    assert sum(bool(identity.ask().decision) for _ in range(30)) == 10


@pytest.mark.parametrize("place", range(6))
def test_key_of_another_type_is_found_before_anything_is_written(kit, place):
    identity = Identity([Rate(1, 60)])
    identity.ask()
    kit.client.delete(*identity.keys[1:])
    kept = kit.client.dump(identity.state)
    kit.client.delete(identity.keys[place])
    kit.client.rpush(identity.keys[place], "foreign")
    with pytest.raises(KeyConflict):
        identity.ask()
    assert kit.keys() == sorted({identity.state, identity.keys[place]})
    assert kit.client.lrange(identity.keys[place], 0, -1) == ["foreign"]
    assert place == 0 or kit.client.dump(identity.state) == kept


def test_usual_rate_is_one_number_when_the_bucket_will_be_empty(kit):
    identity = Identity([Rate(5, 60), Rate(10, 60)])
    outcome = identity.ask()
    assert stored(kit, identity) == (outcome.stamp + 12_000_000, outcome.stamp + 6_000_000)


@pytest.mark.parametrize("rubbish", ["", "x", "1", "9" * 40, "-5 -5", "1 2 3 4 5 6"])
def test_rubbish_in_a_key_breaks_nothing(kit, rubbish):
    identity = Identity([Rate(10, 60)])
    kit.client.set(identity.state, rubbish)
    decision = identity.ask().decision
    assert 0 <= decision.remaining <= 10
    assert decision.retry_after <= 60
