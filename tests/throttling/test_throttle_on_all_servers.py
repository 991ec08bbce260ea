"""Every kind of server gives the same answers, in sync and async code."""

import pytest

from redis_kit.throttling import Ban, Rate, Throttle, statistics
from redis_kit.throttling.strategies import STRATEGIES


def test_rates_decide_together(any_kit, twin):
    limit = Throttle("login", "3/h; 5/d burst 4")
    decisions = [twin(limit.hit, "joe") for _ in range(5)]
    assert [bool(one) for one in decisions] == [True, True, True, False, False]
    assert [one.remaining for one in decisions] == [2, 1, 0, 0, 0]
    assert decisions[3].retry_after == pytest.approx(1200, abs=5)
    assert twin(limit.hit, "ann").remaining == 2


def test_peek_says_what_hit_would(any_kit, twin):
    limit = Throttle("login", "2/h")
    assert twin(limit.peek, "joe") == (True, 2, 2, 0.0, 0.0, limit.rates[0], "")
    twin(limit.hit, "joe", cost=2)
    assert not twin(limit.peek, "joe")
    assert not twin(limit.hit, "joe")


def test_reset_forgets_one_identity(any_kit, twin):
    limit = Throttle("login", "1/h")
    for caller in ("joe", "joe", "ann"):
        twin(limit.hit, caller)
    assert twin(limit.reset, "joe")
    assert twin(limit.hit, "joe")
    assert not twin(limit.hit, "ann")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_counts_settles_bans_and_follows_rules(any_kit, twin, strategy):
    limit = Throttle("login", "3/d; 5/w", strategy=strategy, ban=Ban(2, 60, 600))
    twin(twin(limit.reserve, "joe", cost=3).settle, 2)
    assert twin(limit.hit, "joe").remaining == 0
    assert [twin(limit.hit, "joe", cost=cost).reason for cost in (1, 2)] == ["", "banned"]
    assert twin(limit.reset, "joe")
    limit.rules.override("1/d", 100)
    assert [twin(limit.hit, "joe").allowed for _ in range(2)] == [True, False]
    twin(twin(limit.reserve, "ann").refund)
    assert twin(limit.peek, "ann").rate == Rate(1, 86_400)
    any_kit.client.set(limit.keys("").override, "r gcra 1#1/d", ex=100)
    assert twin(limit.hit, "eve").reason == ("outage" if limit.algorithm.kind == "gcra" else "")


def test_calls_are_counted_by_minute(any_kit, twin):
    limits = [Throttle(f"count-{number}", "2/h") for number in range(5)]
    for limit in limits:
        for caller in ("joe", "joe", "joe", "ann"):
            twin(limit.hit, caller)
    found = statistics.recent(limits, minutes=3)
    assert {
        limit: (sum(one.allowed for one in minutes), sum(one.refused for one in minutes))
        for limit, minutes in found.items()
    } == dict.fromkeys(limits, (3, 1))
    hours = statistics.throttle_history(limits[0], hours=2)
    assert (sum(one.allowed for one in hours), sum(one.refused for one in hours)) == (3, 1)


def test_server_that_lost_its_scripts_is_given_them_again(any_kit, twin):
    limit = Throttle("login", "3/h")
    twin(limit.hit, "joe")
    any_kit.client.script_flush()
    assert twin(limit.hit, "joe").remaining == 1
