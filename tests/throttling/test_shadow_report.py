"""Shadow mode: nothing is refused, all is counted, and a rate is proposed."""

import asyncio
from collections import Counter
from math import ceil, log10
from random import Random

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.throttling import Rate, Throttle, ashadow_report, shadow_report
from redis_kit.throttling.statistics import recent, throttle_history
from redis_kit.throttling.strategies import STRATEGIES

pytestmark = pytest.mark.once

NOON = 1_760_011_200.0


class Clock:
    now = NOON

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_shadow_refuses_nothing_and_consumes_as_the_throttle_would(kit, twin, strategy):
    shadow, real = (Throttle(name, "3/h; 9/d", strategy=strategy, shadow=name == "shadow") for name in ("shadow", "x"))
    kit.options(THROTTLING={"REMEMBER": 0})
    for cost in (2, 2, 1, 1, 3):
        seen, meant = twin(shadow.hit, "joe", cost=cost), twin(real.hit, "joe", cost=cost)
        assert seen
        assert (seen.reason == "shadow") == (not meant)
        assert (seen.limit, seen.remaining) == (meant.limit, meant.remaining)


def test_shadow_mode_allows_even_with_a_rate_of_zero(kit):
    assert Throttle("x", "0/s", shadow=True).hit("joe").reason == "shadow"


def test_shadow_mode_allows_while_the_server_is_unavailable(own_kit):
    limits = [Throttle(policy, "1/h", shadow=True, on_failure=policy) for policy in ("open", "closed", "local")]
    own_kit.server.stop()
    assert all(limit.hit("joe") for limit in limits for _ in range(3))


def rounded(calls):
    """Two digits above a hundred, upwards."""
    step = 1 if calls <= 100 else 10 ** (int(log10(calls)) - 1)
    return ceil(calls / step) * step


def test_report_is_that_of_an_exact_count(kit, clock):
    chance, limit = Random(5), Throttle("x", "5/m; 100/d", shadow=True, clock=clock)
    wanted, refused = Counter(), 0
    for window in range(4):
        for caller in range(40):
            for _ in range(int(chance.paretovariate(0.9)) % 300):
                cost = chance.randint(1, 3)
                wanted[window, caller] += cost
                refused += limit.hit(caller, cost=cost).reason == "shadow"
        clock.now += 60
    counts = sorted(map(rounded, wanted.values()))
    found = shadow_report(limit)
    stored = {int(calls): int(number) for calls, number in kit.client.hgetall(limit.key("demand")).items()}
    assert stored == Counter(counts)
    assert found == asyncio.run(ashadow_report(limit))
    assert (found.windows, found.refused, found.highest) == (len(counts), refused, counts[-1])
    assert found.usual == counts[ceil(len(counts) * 0.5) - 1]
    assert found.high == counts[ceil(len(counts) * 0.999) - 1]
    assert found.proposed == Rate(found.high, 60)
    assert found.rate == Rate(5, 60)
    assert 0 < found.share < 1
    assert found.share == pytest.approx(found.refused / (found.allowed + found.refused))


def test_highest_demand_differs_from_that_of_nearly_all(kit, clock):
    limit = Throttle("x", "5/m", shadow=True, clock=clock)
    for caller in range(2000):
        limit.hit(caller)
    for _ in range(50):
        limit.hit("bot")
    found = shadow_report(limit)
    assert (found.windows, found.usual, found.high, found.highest) == (2001, 1, 1, 50)


def test_report_of_what_nobody_asked_for_proposes_nothing(kit):
    found = shadow_report(Throttle("x", "5/m", shadow=True))
    assert (found.windows, found.highest, found.proposed, found.share) == (0, 0, None, 0)


def test_distribution_restarts_each_week_and_takes_little_memory(kit, clock):
    limit = Throttle("x", "5/m", shadow=True, clock=clock)
    limit.hit("joe")
    kit.client.expire(limit.key("demand"), 1000)
    limit.hit("ann")
    assert kit.client.ttl(limit.key("demand")) <= 1000
    for number in range(3000):
        limit.hit(number % 3, cost=1 + number % 5)
    assert kit.client.hlen(limit.key("demand")) <= 190


@pytest.mark.parametrize(
    "limit", [Throttle("x", "5/m"), Throttle("x", None, shadow=True), Throttle("x", "0/s", shadow=True)]
)
def test_throttle_without_a_shadow_or_a_rate_has_no_report(kit, limit):
    with pytest.raises(InvalidValue, match="report"):
        shadow_report(limit)


@pytest.mark.parametrize("read", [shadow_report, throttle_history, recent])
def test_name_is_not_a_throttle(read):
    with pytest.raises(InvalidValue, match=r"Give a throttle, not 'x'. policy\(\) returns"):
        read("x")


def test_decision_and_tally_are_one_round_trip(kit, commands):
    limit = Throttle("x", "5/m", shadow=True)
    limit.hit("joe")
    with commands(kit) as sent:
        limit.hit("joe")
    assert sent == ["EVALSHA", "EVALSHA"]
