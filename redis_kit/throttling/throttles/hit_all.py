"""Several throttles for one request: all of them count it, or none does."""

from collections.abc import Sequence
from typing import Any

from redis_kit.core import connections
from redis_kit.core.client.cluster import ClusterClient
from redis_kit.core.errors import InvalidValue, RedisFailure
from redis_kit.core.flow import Flow, twin
from redis_kit.core.text import shortened
from redis_kit.throttling.engine.base import Asked, asking
from redis_kit.throttling.engine.decide import Call, Outcome, decide, settle
from redis_kit.throttling.engine.reservation import Reservation
from redis_kit.throttling.signals import throttled
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.decision import Decision

Hit = tuple[Throttle, str | int] | tuple[Throttle, str | int, int]
Calls = Sequence[Call[Throttle]]
Key = tuple[str, str]  # the id of a throttle, and an identity


@asking
def hit_all(hits: Sequence[Hit]) -> Flow[list[Decision]]:
    """Count one request with several throttles. Each hit is a tuple of throttle, identity and optional cost.

    If all throttles have room, all of them count it; otherwise none does. It takes one script and one round trip, or
    none while a refusal is remembered. On a Cluster the keys lie on different nodes, so the throttles are asked in
    turn, and what was counted before a refusal is refunded. If the server is unavailable, each throttle answers by its
    failure policy. An identity that occurs twice for a throttle is counted once, at the sum of both costs.

    Raises InvalidValue if the throttles use several connections or clocks.
    """
    return [outcome.decision for _, outcome in (yield from _decided(hits))]


@asking
def reserve_all(hits: Sequence[Hit]) -> Flow[list[Reservation]]:
    """Count one request with several throttles at what it may cost. See hit_all() and Throttle.reserve()."""
    return reserve_flow(hits)


ahit_all = twin(hit_all)
areserve_all = twin(reserve_all)


def reserve_flow(hits: Sequence[Hit]) -> Flow[list[Reservation]]:
    """See reserve_all(). A flow without a client."""
    return [Reservation(call, outcome) for call, outcome in (yield from _decided(hits))]


def _decided(hits: Sequence[Hit]) -> Flow[list[tuple[Call[Throttle], Outcome]]]:
    calls = [_read(hit) for hit in hits]
    keys = [(call.throttle.id, call.identity) for call in calls]
    outcomes, rest = _early(_merged(keys, calls))
    if rest:
        asked = list(rest.values())
        try:
            results = yield Asked(asked[0].throttle, _steps(asked))
        except RedisFailure as error:
            results = [call.throttle.when_unavailable(call, error) for call in asked]
        outcomes.update(zip(rest, results, strict=True))
    if throttled.receivers:
        for key, (throttle, identity, *_) in zip(keys, hits, strict=True):
            yield from throttle.signal_flow(identity, outcomes[key])
    return [(call, outcomes[key]) for key, call in zip(keys, calls, strict=True)]


def _read(hit: Any) -> Call[Throttle]:
    if not isinstance(hit, (tuple, list)) or len(hit) not in (2, 3) or not isinstance(hit[0], Throttle):
        raise InvalidValue(f"A hit is (throttle, identity) or (throttle, identity, cost), not {shortened(hit)}.")
    return _call(*hit)


def _call(throttle: Throttle, identity: str | int, cost: int = 1) -> Call[Throttle]:
    return Call(throttle, throttle.checked(identity, cost), cost)


def _merged(keys: Sequence[Key], calls: Calls) -> dict[Key, Call[Throttle]]:
    """Return one call for each identity of a throttle, at the sum of its costs."""
    merged: dict[Key, Call[Throttle]] = {}
    for key, call in zip(keys, calls, strict=True):
        before = merged.get(key)
        merged[key] = call if before is None else _call(before.throttle, call.identity, before.cost + call.cost)
    return merged


def _early(calls: dict[Key, Call[Throttle]]) -> tuple[dict[Key, Outcome], dict[Key, Call[Throttle]]]:
    """Return the outcomes that need no server, and the calls to ask it about: none if one is refused without it."""
    outcomes: dict[Key, Outcome] = {}
    rest: dict[Key, Call[Throttle]] = {}
    for key, call in calls.items():
        decision = call.throttle.early_decision(call.identity, call.cost)
        if decision is None:
            rest[key] = call
        else:
            outcomes[key] = Outcome(decision, 0, call.throttle.algorithm)
    if not all(outcome.decision.allowed for outcome in outcomes.values()):
        return outcomes | {key: _unasked(call) for key, call in rest.items()}, {}
    if len({(call.throttle.using, call.throttle.clock) for call in rest.values()}) > 1:
        raise InvalidValue("Throttles that decide together must use one connection and one clock.")
    return outcomes, rest


def _unasked(call: Call[Throttle]) -> Outcome:
    return Outcome(call.throttle.answer(True, "unasked"), 0, call.throttle.algorithm)


def _steps(calls: Calls) -> Flow[list[Outcome]]:
    on_different_nodes = len({call.throttle.tag() for call in calls}) > 1
    if on_different_nodes and isinstance(connections.client(calls[0].throttle.using), ClusterClient):
        return _in_turn(calls)
    return decide(calls)


def _in_turn(calls: Calls) -> Flow[list[Outcome]]:
    outcomes: list[Outcome] = []
    for call in calls:
        try:
            outcomes += yield from decide([call])
        except RedisFailure:
            yield from _refund(calls, outcomes)
            raise
        if not outcomes[-1].decision:
            yield from _refund(calls, outcomes)
            undone = map(_undone, calls, outcomes)
            return [*undone, *(_unasked(later) for later in calls[len(outcomes) :])]
    return outcomes


def _undone(call: Call[Throttle], outcome: Outcome) -> Outcome:
    decision = outcome.decision
    if outcome.counted:
        decision = decision._replace(remaining=min(decision.remaining + call.cost, decision.limit))
    return outcome._replace(decision=decision, counted=False)


def _refund(calls: Calls, outcomes: Sequence[Outcome]) -> Flow[None]:
    for call, outcome in zip(calls, outcomes, strict=False):
        if outcome.counted:
            yield settle(call, outcome, 0)
