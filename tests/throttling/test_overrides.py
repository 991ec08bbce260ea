"""Other rates for a caller, or for everybody, in every strategy."""

import pytest

from redis_kit.core.values.rates import parse
from redis_kit.throttling import Ban, Rate, Throttle, hit_all
from redis_kit.throttling.strategies import STRATEGIES, load


@pytest.fixture(params=STRATEGIES)
def limit(kit, request):
    kit.options(THROTTLING={"REMEMBER": 0})
    return Throttle("x", "5/h", strategy=request.param, ban=Ban(100, 60, 60))


def text(limit, rates):
    """Return the rule as decide.lua reads it."""
    strategy = load(limit.strategy)(parse(rates))
    return f"r {strategy.kind} {' '.join(map(str, strategy.numbers))}#{rates}"


def admitted(limit, caller="joe", number=30, cost=1):
    return sum(limit.hit(caller, cost=cost).allowed for _ in range(number))


@pytest.mark.parametrize(("rates", "most"), [("9/h", 9), ("2/h", 2), ("20/d; 8/h", 8), ("7/h; 100/d", 7)])
def test_override_for_all_replaces_the_rates_of_the_throttle(kit, limit, rates, most):
    kit.client.set(limit.keys("joe").override, text(limit, rates), ex=100)
    assert admitted(limit) == admitted(limit, "ann") == most
    decision = limit.peek("joe")
    assert decision.rate in parse(rates)
    assert decision.limit == decision.rate.limit


def test_rates_of_an_identity_precede_those_for_all(kit, limit):
    _, standing, override, *_ = limit.keys("joe")
    kit.client.set(override, text(limit, "2/h"), ex=100)
    kit.client.set(standing, text(limit, "9/h"), ex=100)
    assert (admitted(limit), admitted(limit, "ann")) == (9, 2)


def test_rates_of_another_strategy_are_passed_over(kit, limit):
    other = "fixed_window" if limit.algorithm.kind != "fixed_window" else "gcra"
    kit.client.set(limit.keys("joe").override, f"r {other} 1 1 1#9/h", ex=100)
    assert admitted(limit) == 5


def test_call_that_costs_more_than_an_override_allows_takes_all_of_it(kit, limit):
    kit.client.set(limit.keys("joe").override, text(limit, "2/h"), ex=100)
    assert limit.hit("joe", cost=4).remaining == 0
    refused = limit.hit("joe", cost=4)
    assert not refused
    assert 0 < refused.retry_after <= 7200


def test_reservation_is_settled_by_the_rates_that_counted_it(kit, limit):
    kit.client.set(limit.keys("joe").override, text(limit, "3/h"), ex=100)
    limit.reserve("joe", cost=3).settle(1)
    assert limit.peek("joe").remaining == 2
    limit.reserve("ann", cost=5).settle(2)
    assert limit.peek("ann").remaining == 1


def test_change_of_rates_lets_no_more_pass_than_both_together(kit, limit):
    override = limit.keys("joe").override
    passed = admitted(limit)
    kit.client.set(override, text(limit, "7/h"), ex=100)
    passed += admitted(limit)
    kit.client.delete(override)
    passed += admitted(limit)
    assert passed <= 5 + 7


@pytest.mark.parametrize(
    ("own", "other", "least"),
    [("5/h; 50/d", "10/h", 8), ("10/h", "10/h; 50/d", 9), ("30/s", "50/s", 40), ("50/s", "30/s", 24)],
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_identity_with_one_call_is_not_blocked_by_an_override(kit, strategy, own, other, least):
    limit = Throttle("x", own, strategy=strategy, clock=lambda: 1_760_000_000.0)
    limit.hit("joe")
    kit.client.set(limit.keys("joe").override, text(limit, other), ex=100)
    assert least <= admitted(limit, number=100) <= limit.peek("joe").limit


def test_bucket_overfull_for_an_override_has_room_after_one_call(kit):
    now = 1_760_000_000.0
    limit = Throttle("x", "7/d", clock=lambda: now)
    limit.hit("joe")  # which takes more than three hours to drain
    kit.client.set(limit.keys("joe").override, text(limit, "70/h"), ex=100)
    refused = limit.hit("joe")
    assert 0 < refused.retry_after <= 3600 / 70 + 0.001
    now += refused.retry_after
    assert limit.hit("joe")


def test_exempt_identity_is_not_counted(kit, limit):
    kit.client.set(limit.keys("joe").standing, "x", ex=100)
    answers = [limit.hit("joe", cost=5) for _ in range(10)]
    assert {(one.allowed, one.reason) for one in answers} == {(True, "exempt")}
    assert not kit.client.exists(limit.keys("joe").state)
    assert all(hit_all([(limit, "joe"), (limit, "ann")]))


def test_rates_for_everybody_leave_bans_as_they_are(kit):
    limit = Throttle("x", "5/h", ban=Ban(2, 60, 60))
    kit.options(THROTTLING={"REMEMBER": 0})
    kit.client.set(limit.keys("joe").override, text(limit, "1/h"), ex=100)
    assert [limit.hit("joe").reason for _ in range(3)] == ["", "", "banned"]


def test_identities_with_their_own_rates_are_not_banned_by_the_throttle(kit):
    limit = Throttle("x", "5/h", ban=Ban(2, 60, 60))
    kit.options(THROTTLING={"REMEMBER": 0})
    kit.client.set(limit.keys("joe").standing, text(limit, "1/h"), ex=100)
    assert {limit.hit("joe").reason for _ in range(5)} == {""}
    assert kit.client.get(limit.keys("joe").standing) == text(limit, "1/h")


def test_bursts_of_rules_hold(kit):
    limit = Throttle("x", "5/h")
    kit.client.set(limit.keys("joe").override, text(limit, "60/h burst 3"), ex=100)
    assert admitted(limit) == 3
    assert limit.peek("joe").rate == Rate(60, 3600, 3)
