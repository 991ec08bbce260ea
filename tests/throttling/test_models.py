"""Every strategy against its definition in exact arithmetic, on a clock that jumps ahead and back."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from redis_kit.throttling import Rate, Throttle
from tests.throttling.support.models.every import MODELS

pytestmark = pytest.mark.once

START = 1_760_000_000_000_000  # microseconds
MILLISECOND, SECOND, HOUR = 1000, 1_000_000, 3_600_000_000

periods = st.sampled_from([0.001, 0.003, 0.007, 0.1, 1, 7, 60, 3600, 86_400, 31_536_000])
limits = st.integers(1, 12)
passing = st.one_of(st.integers(0, 5000), st.integers(0, 10**7), st.integers(0, 10**10))
jumps = st.sampled_from([-5 * HOUR, -61_000_000, -MILLISECOND, -1, 2 * HOUR, 3 * 86_400_000_000])
moves = st.tuples(
    st.sampled_from(["hit", "hit", "hit", "peek", "reserve", "settle", "refund", "reset"]),
    st.integers(1, 4),
    st.one_of(st.just(0), st.just(0), passing, jumps),
)


class Both:
    """A throttle on a clock of its own, and its model."""

    def __init__(self, strategy, rates, name="x"):
        self.now, self.open = START, []
        self.throttle = Throttle(name, rates, strategy=strategy, clock=lambda: self.now / 1_000_000)
        self.model = MODELS[strategy](rates)
        self.most = min(rate.burst for rate in rates)

    def do(self, what, cost):
        """Do the same with both, and compare the answers."""
        cost = min(cost, self.most)
        if what in ("hit", "peek"):
            self.compare(getattr(self.throttle, what)("joe", cost=cost), cost, consume=what == "hit")
        elif what == "reserve":
            found = self.throttle.reserve("joe", cost=cost)
            if self.compare(found.decision, cost, consume=True):
                self.open.append((found, self.now, cost, self.model.mark()))
        elif what == "reset":
            self.throttle.reset("joe")
            self.model.reset()
            self.open.clear()
        elif self.open:
            found, stamp, reserved, mark = self.open.pop(0)
            actual = 0 if what == "refund" else cost
            found.settle(actual)
            if actual != reserved:
                self.model.settle(self.now, stamp, reserved, actual, mark)

    def compare(self, decision, cost, *, consume):
        allowed, stands = self.model.hit(self.now, cost, consume=consume)
        assert decision.allowed == allowed
        chosen = stands[self.throttle.rates.index(decision.rate)]
        assert decision.limit == decision.rate.burst
        assert decision.remaining == max(chosen.remaining, 0)
        assert decision.reset_after == pytest.approx(chosen.reset / 1e6, abs=1e-6)
        if allowed:
            assert decision.retry_after == 0
            assert chosen.remaining == min(stand.remaining for stand in stands)
        else:
            assert decision.retry_after == pytest.approx(max(stand.wait for stand in stands) / 1e6, abs=1e-6)
            if consume:  # a peek does not note that the clock went back
                self.check_moment(decision, cost)
        return allowed

    def check_moment(self, decision, cost):
        """At the moment that a refusal names, a call would pass; a millisecond before, it would not."""
        now, wait = self.now, round(decision.retry_after * 1_000_000)
        self.now = now + wait
        assert self.throttle.peek("joe", cost=cost)
        self.now = now + wait - min(MILLISECOND, wait)
        assert not self.throttle.peek("joe", cost=cost)
        self.now = now


def rates_of(strategy, numbers):
    bursts = strategy in ("gcra", "token_bucket")
    return [Rate(limit, period, burst if bursts else -1) for limit, period, burst in numbers]


@pytest.mark.parametrize("strategy", MODELS)
@given(st.lists(st.tuples(limits, periods, limits), min_size=1, max_size=3), st.lists(moves, min_size=1, max_size=25))
@example([(1, 1, 1)], [("hit", 1, 0), ("reserve", 1, SECOND), ("refund", 1, -5 * HOUR), ("hit", 1, 0)])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_answer_is_that_of_the_model(kit, strategy, numbers, moves):
    kit.client.flushdb()
    both = Both(strategy, rates_of(strategy, numbers))
    for what, cost, passed in moves:
        both.now += passed
        both.do(what, cost)


@pytest.mark.parametrize("strategy", MODELS)
@given(st.lists(st.tuples(limits, st.sampled_from([0.002, 0.005, 0.02])), min_size=1, max_size=2))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_answer_on_the_clock_of_the_server_is_that_of_the_model(kit, strategy, numbers):
    kit.client.flushdb()
    kit.options(THROTTLING={"REMEMBER": 0})
    rates = [Rate(*pair) for pair in numbers]
    throttle, model = Throttle("x", rates, strategy=strategy), MODELS[strategy](rates)
    for _ in range(60):
        found = throttle.reserve("joe")
        allowed, stands = model.hit(found._outcome.stamp)
        assert found.decision.allowed == allowed
        assert found.decision.remaining == stands[rates.index(found.decision.rate)].remaining
