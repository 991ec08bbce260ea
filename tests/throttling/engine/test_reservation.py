"""Calls whose cost is known afterwards."""

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.throttling import Throttle
from redis_kit.throttling.strategies import STRATEGIES

pytestmark = pytest.mark.once


@pytest.fixture(params=STRATEGIES)
def limit(kit, request):
    return Throttle("x", "10/d; 100/w", strategy=request.param)


def test_settling_corrects_the_cost(limit, twin):
    for actual, remaining in ((0, 10), (1, 9), (4, 6), (7, 3), (10, 0), (50, 0)):
        reservation = twin(limit.reserve, f"used {actual}", cost=4)
        assert reservation
        assert reservation.decision.remaining == 6
        twin(reservation.settle, actual)
        assert limit.peek(f"used {actual}").remaining == remaining


def test_refund_is_as_if_the_call_had_never_come(limit, twin):
    limit.hit("joe", cost=2)
    found = twin(limit.reserve, "joe", cost=8)
    assert not limit.peek("joe")
    twin(found.refund)
    assert limit.peek("joe").remaining == 8


def test_settling_needs_one_command_and_none_where_nothing_changes(kit, limit, twin, commands):
    twin(twin(limit.reserve, "joe", cost=2).settle, 1)
    found = [twin(limit.reserve, "joe", cost=2) for _ in range(2)]
    with commands(kit) as sent:
        twin(found[0].settle, 1)
        twin(found[1].settle, 2)
    assert sent == ["EVALSHA"]


def test_refused_reservation_took_nothing_and_gives_nothing_back(limit, twin):
    limit.hit("joe", cost=9)
    found = twin(limit.reserve, "joe", cost=2)
    assert not found
    twin(found.refund)
    assert limit.peek("joe").remaining == 1


def test_second_settlement_is_an_error(kit, twin):
    found = twin(Throttle("x", "10/d").reserve, "joe")
    twin(found.settle, 1)
    with pytest.raises(InvalidValue, match="was already set"):
        twin(found.refund)


@pytest.mark.parametrize("actual", [-1, 1.5, True, None, 2**31 + 1])
def test_actual_cost_is_checked_and_may_then_be_corrected(kit, twin, actual):
    limit = Throttle("x", "10/d")
    found = twin(limit.reserve, "joe")
    with pytest.raises(InvalidValue, match="whole number"):
        twin(found.settle, actual)
    twin(found.settle, 3)
    assert limit.peek("joe").remaining == 7


def test_settlement_is_skipped_while_the_server_is_unavailable(own_kit, twin):
    limit = Throttle("x", "10/d", on_failure="closed")
    found = twin(limit.reserve, "joe")
    own_kit.server.stop()
    twin(found.refund)
    refused = twin(limit.reserve, "joe")
    assert refused.decision.reason == "outage"
    own_kit.server.start()
    twin(refused.refund)
    assert limit.peek("joe").remaining == 10  # that server keeps nothing over a stop


def test_reservation_made_in_an_outage_refunds_nothing_afterwards(own_kit, twin):
    limit = Throttle("x", "10/d", on_failure="open")
    own_kit.server.stop()
    found = twin(limit.reserve, "joe", cost=5)
    own_kit.server.start()
    own_kit.options(PREFIX=own_kit.prefix)  # the circuit breaker of before is forgotten
    limit.hit("joe", cost=7)
    before = limit.peek("joe").remaining
    twin(found.refund)
    assert limit.peek("joe").remaining == before


def test_exempt_and_shadowed_identities_reserve_nothing(kit, twin):
    limit = Throttle("x", "10/d", shadow=True)
    limit.hit("joe", cost=9)
    found = twin(limit.reserve, "joe", cost=5)
    assert found.decision.reason == "shadow"
    twin(found.refund)
    assert limit.peek("joe").remaining == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("passed", [0, 1, 4, 9, 60])
def test_what_a_refund_frees_never_lets_more_pass_than_the_limit(kit, strategy, passed):
    now = 1_760_000_000.0
    limit = Throttle("x", "10/10", strategy=strategy, clock=lambda: now)
    reserved = limit.reserve("joe", cost=10)
    now += passed
    used = sum(bool(limit.hit("joe")) for _ in range(20))
    reserved.refund()
    used += sum(bool(limit.hit("joe")) for _ in range(20))
    assert used == 10
