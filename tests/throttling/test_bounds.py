"""Calls that stay counted are within the limit in every period, whatever was reserved and refunded in between."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redis_kit.throttling import Throttle
from tests.throttling.support.bounds import CHECKS, excess

pytestmark = pytest.mark.once

START = 1_760_000_000_000_000  # microseconds
LIMIT, PERIOD = 6, 6_000_000

moves = st.tuples(
    st.sampled_from(["hit", "reserve", "settle"]),
    st.integers(0, 6),
    st.sampled_from([0, 0, 400_000, 2_500_000, 7_000_000]),
)


@pytest.mark.parametrize("strategy", CHECKS)
@given(st.lists(moves, min_size=5, max_size=40))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_used_never_exceeds_the_limit(kit, strategy, moves):
    kit.client.flushdb()
    now, used, open_ = START, [], []
    throttle = Throttle("x", [(LIMIT, PERIOD / 1_000_000)], strategy=strategy, clock=lambda: now / 1_000_000)
    for what, cost, passed in moves:
        now += passed
        if what == "settle" and open_:
            found, stamp, reserved = open_.pop(0)
            found.settle(min(cost, reserved))
            used += [stamp] * min(cost, reserved)
        elif what != "settle" and (found := throttle.reserve("joe", cost=max(cost, 1))):
            if what == "hit":
                used += [now] * max(cost, 1)
            else:
                open_.append((found, now, max(cost, 1)))
    assert excess(strategy, sorted(used), LIMIT, PERIOD) == 0
