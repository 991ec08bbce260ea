"""The same answers from every kind of server, in sync and async code."""

import pytest

from redis_kit.throttling import Throttle, counters


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


def test_reset_forgets_one_caller(any_kit, twin):
    limit = Throttle("login", "1/h")
    for caller in ("joe", "joe", "ann"):
        twin(limit.hit, caller)
    assert twin(limit.reset, "joe")
    assert twin(limit.hit, "joe")
    assert not twin(limit.hit, "ann")


def test_calls_are_counted_by_minute(any_kit, twin):
    limits = [Throttle(f"count-{number}", "2/h") for number in range(5)]
    for limit in limits:
        for caller in ("joe", "joe", "joe", "ann"):
            twin(limit.hit, caller)
    found = counters.recent(limits, minutes=3)
    assert {
        name: (sum(one.allowed for one in minutes), sum(one.refused for one in minutes))
        for name, minutes in found.items()
    } == {limit.name: (3, 1) for limit in limits}


def test_server_that_lost_its_scripts_is_given_them_again(any_kit, twin):
    limit = Throttle("login", "3/h")
    twin(limit.hit, "joe")
    any_kit.client.script_flush()
    assert twin(limit.hit, "joe").remaining == 1
