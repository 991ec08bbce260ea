"""Several throttles for one request: all of them count it, or none does."""

import asyncio

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.throttling import Throttle, ahit_all, areserve_all, hit_all, reserve_all, throttled
from redis_kit.throttling.strategies import STRATEGIES


@pytest.fixture(params=["sync", "async"])
def hit(request):
    return hit_all if request.param == "sync" else lambda calls: asyncio.run(ahit_all(calls))


@pytest.fixture(params=["sync", "async"])
def reserve(request):
    return reserve_all if request.param == "sync" else lambda calls: asyncio.run(areserve_all(calls))


def left(*limits):
    return [limit.peek("joe").remaining for limit in limits]


def test_all_count_or_none_does_whatever_their_strategies(any_kit, hit):
    limits = [Throttle(strategy, "5/d", strategy=strategy) for strategy in STRATEGIES]
    small = Throttle("small", "2/d", strategy="sliding_log")
    calls = [(limit, "joe") for limit in (*limits[:2], small, *limits[2:])]
    assert [[bool(one) for one in hit(calls)] for _ in range(2)] == [[True] * 6] * 2
    refused = hit(calls)
    assert refused[2].allowed is False
    assert [one.remaining for one in refused[:2]] == [3, 3]
    assert left(*limits, small) == [3] * 5 + [0]


def test_decision_is_one_command(kit, commands, hit):
    calls = [(Throttle(f"t{number}", "5/h; 50/d"), "joe", 2) for number in range(5)]
    hit(calls)
    with commands(kit) as sent:
        assert all(hit(calls))
    assert sent == ["EVALSHA"]


def test_remembered_refusal_of_one_asks_nobody(kit, commands, hit):
    full, free = Throttle("full", "1/h"), Throttle("free", "5/h")
    hit([(full, "joe"), (free, "joe")])
    hit([(full, "joe"), (free, "joe")])
    with commands(kit) as sent:
        refused, unasked = hit([(full, "joe"), (free, "joe")])
    assert sent == []
    assert (refused.allowed, unasked.allowed, unasked.reason) == (False, True, "unasked")
    assert left(free) == [4]


def test_no_calls_are_no_decisions(kit, commands, hit):
    with commands(kit) as sent:
        assert hit([]) == []
    assert sent == []


def test_identity_named_twice_counts_at_the_sum_of_its_costs(kit, hit):
    for strategy in STRATEGIES:
        limit = Throttle(strategy, "5/h", strategy=strategy)
        same = Throttle(strategy, "5/h", strategy=strategy)
        assert all(hit([(limit, "joe"), (same, "joe", 2), (limit, "ann")]))
        assert left(limit) == [2]
        assert limit.peek("ann").remaining == 4
        assert not all(hit([(limit, "joe", 2), (same, "joe", 1)]))
        assert left(limit) == [2]
    assert not any(hit([(limit, "ann", 3), (limit, "ann", 3)]))


def test_shadow_throttles_delay_nobody_and_count_what_they_would_allow(kit, hit):
    shadow, real = Throttle("shadow", "1/d", shadow=True), Throttle("real", "3/d")
    answers = [hit([(shadow, "joe"), (real, "joe")]) for _ in range(4)]
    assert [one.reason for one, _ in answers] == ["", "shadow", "shadow", "shadow"]
    assert [one.allowed for _, one in answers] == [True, True, True, False]
    assert left(real) == [0]


def test_every_refusal_sends_the_signal_with_the_identity_as_it_was_given(kit, hit):
    seen = []

    def note(**kwargs):
        seen.append((kwargs["throttle"], kwargs["identity"]))

    long, limits = "x" * 1000, [Throttle("a", "1/h"), Throttle("b", "5/h")]
    throttled.connect(note)
    try:
        for _ in range(2):
            hit([(limits[0], long), (limits[1], 42)])
    finally:
        throttled.disconnect(note)
    assert seen == [(limits[0], long)]


def test_connections_and_clocks_must_be_the_same(kit, hit):
    kit.options(CONNECTIONS=dict.fromkeys(("default", "other"), kit.server.connection))
    with pytest.raises(InvalidValue, match="one connection and one clock"):
        hit([(Throttle("a", "1/h"), "joe"), (Throttle("b", "1/h", using="other"), "joe")])
    with pytest.raises(InvalidValue, match="one connection and one clock"):
        hit([(Throttle("a", "1/h"), "joe"), (Throttle("b", "1/h", clock=lambda: 1.0), "joe")])
    assert kit.keys() == []


def test_while_the_server_is_away_each_answers_by_its_own_policy(own_kit, hit):
    limits = [Throttle(policy, "2/h", on_failure=policy) for policy in ("open", "closed", "local")]
    own_kit.server.stop()
    answers = [[one.allowed for one in hit([(limit, "joe") for limit in limits])] for _ in range(3)]
    assert answers == [[True, False, True], [True, False, True], [True, False, False]]
    assert [one.reason for one in hit([(limit, "joe") for limit in limits])] == ["outage", "outage", "local"]


def test_key_of_another_type_leaves_all_uncounted(any_kit, hit):
    first, second = Throttle("first", "5/d"), Throttle("second", "5/d")
    any_kit.client.rpush(second.keys("joe").state, "foreign")
    assert [one.reason for one in hit([(first, "joe"), (second, "joe")])] == ["outage", "outage"]
    assert left(first) == [5]


def test_what_was_reserved_together_is_settled_one_by_one(any_kit, reserve):
    limits = [Throttle(strategy, "9/d", strategy=strategy) for strategy in STRATEGIES]
    found = reserve([(limit, "joe", 5) for limit in limits])
    for one in found:
        one.settle(2)
    assert left(*limits) == [7] * 5


def test_what_was_refused_together_has_nothing_to_give_back(any_kit, reserve):
    small, large = Throttle("small", "1/d"), Throttle("large", "9/d")
    assert all(reserve([(large, "joe", 3), (small, "joe")]))
    found = reserve([(large, "joe", 3), (small, "joe")])
    assert [bool(one) for one in found] == [True, False]
    for one in found:
        one.refund()
    assert left(large, small) == [6, 0]


@pytest.mark.parametrize("call", [("limit",), "limit", ("x", "y"), ("limit", "joe", 1, 1), None])
def test_what_is_no_call_is_refused_with_what_one_is(kit, hit, call):
    limit = Throttle("a", "5/h")
    wrong = limit if call == "limit" else call and tuple(limit if part == "limit" else part for part in call)
    with pytest.raises(InvalidValue, match=r"A hit is \(throttle, identity\) or \(throttle, identity, cost\), not"):
        hit([wrong])
    assert kit.keys() == []
