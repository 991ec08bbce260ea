"""Throttle: its answers, its arguments, its commands."""

import asyncio
import math
import time

import pytest

from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.throttling import Decision, InvalidRate, Throttle, hit_all, throttled
from redis_kit.throttling.statistics import recent
from redis_kit.throttling.strategies import STRATEGIES
from redis_kit.throttling.throttles import MOST_REGISTERED, registered
from redis_kit.throttling.values import UNLIMITED


def test_decision_is_worth_whether_it_allows(kit):
    limit = Throttle("login", "2/h")
    first, second, third = (limit.hit("joe") for _ in range(3))
    assert (bool(first), bool(second), bool(third)) == (True, True, False)
    assert [one.remaining for one in (first, second, third)] == [1, 0, 0]
    assert (first.limit, first.retry_after) == (2, 0)
    assert third.retry_after == pytest.approx(1800, abs=1)
    assert third.reset_after == pytest.approx(3600, abs=1)


def test_identities_and_throttles_are_independent(kit):
    login, other = Throttle("login", "1/h"), Throttle("other", "1/h")
    assert login.hit("joe")
    assert login.hit("ann")
    assert other.hit("joe")
    assert not login.hit("joe")


def test_other_rates_under_the_same_name_count_apart(kit):
    assert Throttle("api", "1/h").hit("joe")
    assert Throttle("api", "2/h").hit("joe").remaining == 1


def test_several_rates_are_one_decision_with_the_longest_wait(kit):
    limit = Throttle("login", "3/h; 2/m")
    decisions = [limit.hit("joe") for _ in range(3)]
    assert [bool(one) for one in decisions] == [True, True, False]
    assert str(decisions[0].rate) == "2/m"
    assert str(decisions[2].rate) == "2/m"
    assert limit.peek("joe").retry_after == pytest.approx(30, abs=1)


def test_cost_counts_for_several_calls(kit):
    limit = Throttle("export", "10/h")
    assert limit.hit("joe", cost=7).remaining == 3
    assert not limit.hit("joe", cost=4)
    assert limit.hit("joe", cost=3).remaining == 0


def test_burst_is_apart_from_the_rate(kit):
    assert [bool(Throttle("a", "60/h burst 2").hit("joe")) for _ in range(4)] == [True, True, False, False]
    assert sum(bool(Throttle("b", "2/h burst 5").hit("joe")) for _ in range(9)) == 5


def test_never_and_always_ask_nobody(kit, commands):
    never, always = Throttle("never", "0/s"), Throttle("always", None)
    mixed = Throttle("mixed", "5/m; 0/h")
    with commands(kit) as sent:
        decisions = [never.hit("joe"), never.peek("joe"), mixed.hit("joe")]
        free = always.hit("joe", cost=100)
    assert sent == []
    assert not any(decisions)
    assert all((one.limit, one.remaining, one.retry_after) == (0, 0, math.inf) for one in decisions)
    assert free == Decision(True, UNLIMITED, UNLIMITED, 0.0, 0.0)


def test_disabled_throttles_allow_all_without_asking(kit, commands):
    kit.options(THROTTLING={"ENABLED": False})
    limit = Throttle("login", "1/h")
    with commands(kit) as sent:
        assert all(limit.hit("joe") for _ in range(3))
    assert sent == []
    with pytest.raises(InvalidValue):
        limit.hit("joe", cost=-1)


def test_one_command_for_each_decision_whatever_the_number_of_rates(kit, commands, twin):
    limit = Throttle("login", "5/s; 50/m; 500/h; 5000/d")
    limit.hit("joe")
    limit.reset("joe")
    with commands(kit) as sent:
        twin(limit.hit, "joe")
        twin(limit.peek, "joe")
        twin(limit.reset, "joe")
    assert sent == ["EVALSHA"] * 3


@pytest.mark.parametrize("cost", [-5, 2.5, math.nan, True, "1", None])
def test_cost_that_is_no_whole_number_is_refused_before_anything_is_sent(kit, commands, cost, twin):
    limit = Throttle("login", "5/m; 50/h")
    with commands(kit) as sent:
        for method in (limit.hit, limit.peek):
            with pytest.raises(InvalidValue, match="cost must be a whole number from 0"):
                twin(method, "joe", cost=cost)
    assert sent == []


def test_cost_that_can_never_pass_is_refused_and_counted_as_refused(kit, twin):
    limit = Throttle("login", "5/m; 50/h")
    for method, cost in ((limit.hit, 6), (limit.hit, 10**20), (limit.peek, 6)):
        decision = twin(method, "joe", cost=cost)
        assert (decision.allowed, decision.retry_after, decision.rate) == (False, math.inf, limit.rates[0])
    assert limit.hit("joe").remaining == 4
    assert recent([limit])[limit][-1][1:] == (1, 2)
    assert twin(Throttle("login", "5/m", shadow=True).hit, "joe", cost=6).reason == "shadow"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_cost_of_0_counts_nothing(kit, twin, strategy):
    limit = Throttle("login", "2/h", strategy=strategy)
    assert twin(limit.hit, "joe").remaining == 1
    assert twin(limit.hit, "joe", cost=0).remaining == 1
    assert twin(limit.hit, "joe")
    assert twin(limit.hit, "joe", cost=0)
    assert hit_all([(limit, "joe", 0), (Throttle("other", "2/h"), "joe", 0)])[0]
    assert sum(minute.allowed for minute in recent([limit])[limit]) == 2
    limit.rules.ban("joe", 60)
    assert twin(limit.hit, "joe", cost=0).reason == "banned"


@pytest.mark.parametrize("wrong", [{"shadow": "yes"}, {"shadow": 1}, {"clock": 5}])
def test_wrong_option_is_an_error_when_the_throttle_is_built(wrong):
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        Throttle("login", "5/m", **wrong)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_clock_without_a_time_is_named(kit, wrong, twin):
    limit = Throttle("login", "5/m", clock=lambda: wrong)
    for method in (limit.hit, limit.peek):
        with pytest.raises(InvalidValue, match=f"The clock of the throttle 'login' must return seconds, not {wrong}"):
            twin(method, "joe")


@pytest.mark.parametrize("identity", [None, "", {}, {"a": 1}, ("a",), b"joe", True, 1.5])
def test_identity_that_is_no_text_is_refused(kit, identity, twin):
    limit = Throttle("login", "5/m")
    for method in (limit.hit, limit.peek, limit.reset):
        with pytest.raises(InvalidName, match="'login'"):
            twin(method, identity)


@pytest.mark.parametrize("identity", ["a:b", "{x}", "}{", "*", "\0", "\r\n", "\ud800", "é", "x" * 10_000, "用户", 42])
def test_any_text_is_one_identity_and_none_is_stored_as_it_is(kit, identity):
    limit = Throttle("login", "1/h")
    assert limit.hit(identity)
    assert not limit.hit(identity)
    assert limit.hit(f"{identity}'")
    states = [key for key in kit.keys() if not key.endswith(("latest", "counts", "offenders"))]
    assert {len(key) for key in states} == {len(limit.key("")) + 22 + 6}
    assert limit.reset(identity)
    assert limit.hit(identity)


def test_all_keys_of_a_throttle_share_a_slot_and_expire(kit):
    limit = Throttle("log{in}", "5/m")
    limit.hit("joe")
    limit.hit("ann")
    stored = kit.keys()
    assert len(stored) == 3
    for key in stored:
        assert key.startswith(f"{kit.prefix}:{{throttling:log%7Bin%7D}}:")
        assert 0 < kit.client.ttl(key) <= 90 * 86_400


@pytest.mark.parametrize("name", ["", None, 5, "x" * 513, "\ud800"])
def test_name_is_checked(name):
    with pytest.raises(InvalidName):
        Throttle(name, "5/m")


def test_rates_are_checked_when_the_throttle_is_built():
    with pytest.raises(InvalidRate):
        Throttle("login", "5/x")


def test_policy_is_checked():
    with pytest.raises(InvalidValue, match="open, closed, local"):
        Throttle("login", "5/m", on_failure="opne")


def test_every_refusal_sends_the_signal(kit, twin):
    seen = []

    def note(**kwargs):
        seen.append((kwargs["throttle"], kwargs["identity"], kwargs["decision"].allowed))
        raise RuntimeError("a receiver's trouble is not the caller's")

    limit = Throttle("login", "1/h")
    throttled.connect(note)
    try:
        for _ in range(3):
            twin(limit.hit, "joe")
        twin(limit.peek, "joe")
    finally:
        throttled.disconnect(note)
    assert seen == [(limit, "joe", False)] * 2


def test_time_of_a_wait_is_kept(kit):
    limit = Throttle("fast", "20/s burst 1")
    assert limit.hit("joe")
    refused = limit.hit("joe")
    assert 0 < refused.retry_after <= 0.05
    time.sleep(refused.retry_after)
    assert limit.hit("joe")


def test_tasks_and_sync_code_share_the_same_limit(kit):
    limit = Throttle("login", "4/h")

    async def main():
        return await asyncio.gather(*(limit.ahit("joe") for _ in range(3)))

    assert all(asyncio.run(main()))
    assert limit.hit("joe")
    assert not limit.hit("joe")


def test_built_throttles_are_known_by_name_and_their_number_is_bounded(none_registered):
    first = Throttle("rk-first", "5/m")
    again = Throttle("rk-first", "6/m")
    assert again in registered.values()
    assert first not in registered.values()
    for number in range(MOST_REGISTERED):
        Throttle(f"rk-{number}", "5/m")
    assert len(registered) == MOST_REGISTERED
    assert again not in registered.values()
