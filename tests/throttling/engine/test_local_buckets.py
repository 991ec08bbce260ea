"""Buckets of one process, for while the server is unavailable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redis_kit.throttling import Rate
from redis_kit.throttling.engine import memory
from tests.throttling.support.models.bucket import Bucket


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 1_000_000_000

    monkeypatch.setattr(memory, "monotonic_ns", lambda: Clock.now * 1000)
    return Clock


class Steps:
    """Hypothesis' own clock."""

    now = 0


rates = st.builds(Rate, st.integers(1, 50), st.sampled_from([0.5, 1, 60, 3600]), st.integers(1, 12))
calls = st.lists(st.tuples(st.integers(1, 4), st.booleans(), st.integers(0, 10**8)), max_size=30)


@given(st.lists(rates, min_size=1, max_size=3), calls)
def test_every_decision_is_that_of_the_model(rates, calls):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "monotonic_ns", lambda: Steps.now * 1000)
        Steps.now = 10**9
        buckets, model = memory.LocalBuckets(rates), Bucket(rates)
        for cost, consume, passed in calls:
            Steps.now += passed
            cost = min(cost, *(rate.burst for rate in rates))
            decision = buckets.decide("joe", cost, consume=consume)
            allowed, figures = model.hit(Steps.now, cost, consume=consume)
            assert decision.allowed == allowed
            assert decision.remaining == figures[rates.index(decision.rate)].remaining


@pytest.mark.parametrize(("processes", "admitted"), [(1, 12), (3, 4), (5, 2), (12, 1), (100, 1)])
def test_limit_is_shared_out_among_the_processes(kit, clock, processes, admitted):
    kit.options(THROTTLING={"PROCESSES": processes})
    buckets = memory.LocalBuckets([Rate(12, 3600)])
    decisions = [buckets.decide("joe", 1, consume=True) for _ in range(20)]
    assert sum(map(bool, decisions)) == admitted
    assert decisions[0].limit == admitted
    clock.now += round(decisions[-1].retry_after * 10**6)
    assert buckets.decide("joe", 1, consume=True)


def test_cost_above_a_process_share_takes_the_whole_share(kit, clock):
    kit.options(THROTTLING={"PROCESSES": 4})
    buckets = memory.LocalBuckets([Rate(12, 3600)])
    assert buckets.decide("joe", 9, consume=True).remaining == 0
    assert not buckets.decide("joe", 1, consume=True)


def test_number_of_identities_is_bounded(clock, monkeypatch):
    monkeypatch.setattr(memory, "IDENTITIES", 50)
    buckets = memory.LocalBuckets([Rate(1, 3600)])
    for number in range(200):
        buckets.decide(str(number), 1, consume=True)
    assert len(buckets._levels) == 50
    assert not buckets.decide("199", 1, consume=True)
    assert buckets.decide("0", 1, consume=True)
