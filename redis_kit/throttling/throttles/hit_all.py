"""Several throttles of one request: all count it, or none does."""

from collections.abc import Sequence
from typing import Any

from redis_kit.core import connections
from redis_kit.core.client.cluster import ClusterClient
from redis_kit.core.errors import InvalidValue, RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.text import shortened
from redis_kit.throttling.engine.decide import Asked, Outcome, decide, settle
from redis_kit.throttling.engine.reservation import Reservation
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.decision import Decision

Called = tuple[Throttle, str | int] | tuple[Throttle, str | int, int]


def hit_all(calls: Sequence[Called]) -> list[Decision]:
    """Count one request with several throttles, each a tuple of throttle, identity and, unless it is 1, cost.

    Counts it with all if all have room, and with none otherwise. One script and one round trip, none while a refusal is
    remembered, for the throttles of one connection; raises InvalidValue where they use several. On a Cluster the
    throttles' keys lie on different nodes: there they are asked one after the other, and what was counted before a
    refusal is given back. While the server is away each answers by its own policy. A caller that is named twice for a
    throttle counts once, at the sum of both costs.
    """
    return [one.decision for one in reserve_all(calls)]


async def ahit_all(calls: Sequence[Called]) -> list[Decision]:
    """See hit_all()."""
    return [one.decision for one in await areserve_all(calls)]


def reserve_all(calls: Sequence[Called]) -> list[Reservation]:
    """Count one request with several throttles at what it may cost. See hit_all() and Throttle.reserve()."""
    asked = [_read(call) for call in calls]
    merged = _merged(asked)
    outcomes, rest = _known(merged)
    if rest:
        try:
            found = rest[0].throttle.carry_out(_steps(rest))
        except RedisFailure as error:
            found = [call.throttle.without_server(call, error) for call in rest]
        outcomes |= {_who(call): outcome for call, outcome in zip(rest, found, strict=True)}
    for call, (throttle, identity, *_) in zip(asked, calls, strict=True):
        throttle.tell(identity, outcomes[_who(call)])
    return [Reservation(call, outcomes[_who(call)]) for call in asked]


async def areserve_all(calls: Sequence[Called]) -> list[Reservation]:
    """See reserve_all()."""
    asked = [_read(call) for call in calls]
    merged = _merged(asked)
    outcomes, rest = _known(merged)
    if rest:
        try:
            found = await rest[0].throttle.acarry_out(_steps(rest))
        except RedisFailure as error:
            found = [call.throttle.without_server(call, error) for call in rest]
        outcomes |= {_who(call): outcome for call, outcome in zip(rest, found, strict=True)}
    for call, (throttle, identity, *_) in zip(asked, calls, strict=True):
        await throttle.atell(identity, outcomes[_who(call)])
    return [Reservation(call, outcomes[_who(call)]) for call in asked]


def _read(call: Any) -> Asked:
    if not isinstance(call, (tuple, list)) or len(call) not in (2, 3) or not isinstance(call[0], Throttle):
        raise InvalidValue(f"A call is (throttle, identity) or (throttle, identity, cost), not {shortened(call)}.")
    return _asked(*call)


def _asked(throttle: Throttle, identity: str | int, cost: int = 1) -> Asked:
    return Asked(throttle, throttle.checked(identity, cost), cost)


def _who(call: Asked) -> tuple[str, str]:
    return call.throttle.id, call.caller


def _merged(asked: Sequence[Asked]) -> list[Asked]:
    """Return one call for each caller of a throttle, at the sum of its costs."""
    found: dict[tuple[str, str], Asked] = {}
    for call in asked:
        before = found.get(_who(call))
        found[_who(call)] = _asked(before.throttle, call.caller, before.cost + call.cost) if before else call
    return list(found.values())


def _known(asked: Sequence[Asked]) -> tuple[dict[tuple[str, str], Outcome], list[Asked]]:
    """Return what needs no server, and the calls to ask it about: none where one is refused without it."""
    found = {
        call: decision for call in asked if (decision := call.throttle.decided(call.caller, call.cost)) is not None
    }
    outcomes = {_who(call): Outcome(decision, 0, call.throttle.counting) for call, decision in found.items()}
    rest = [call for call in asked if call not in found]
    if not all(found.values()):
        return outcomes | {_who(call): _unasked(call) for call in rest}, []
    if len({(call.throttle.using, call.throttle.clock) for call in rest}) > 1:
        raise InvalidValue("Throttles that decide together must use one connection and one clock.")
    return outcomes, rest


def _unasked(call: Asked) -> Outcome:
    return Outcome(call.throttle.answer(True, "unasked"), 0, call.throttle.counting)


def _steps(calls: Sequence[Asked]) -> Flow[list[Outcome]]:
    apart = len({call.throttle.tag() for call in calls}) > 1
    if apart and isinstance(connections.client(calls[0].throttle.using), ClusterClient):
        return _one_by_one(calls)
    return decide(calls, consume=True)


def _one_by_one(calls: Sequence[Asked]) -> Flow[list[Outcome]]:
    found: list[Outcome] = []
    for call in calls:
        try:
            found += yield from decide([call], consume=True)
        except RedisFailure:
            yield from _give_back(calls, found)
            raise
        if not found[-1].decision:
            yield from _give_back(calls, found)
            undone = [outcome._replace(counted=False) for outcome in found]
            return undone + [_unasked(later) for later in calls[len(found) :]]
    return found


def _give_back(calls: Sequence[Asked], outcomes: Sequence[Outcome]) -> Flow[None]:
    for call, outcome in zip(calls, outcomes, strict=False):
        if outcome.counted:
            yield settle(call, outcome, 0)
