"""A throttle: how often each identity may do something; and several throttles for one request."""

import math
from collections.abc import Sequence
from functools import cached_property
from random import random
from time import monotonic
from typing import Any, NoReturn

from redis_kit.core import connections
from redis_kit.core.awaitables import LocalCall, sending
from redis_kit.core.client.cluster import ClusterClient
from redis_kit.core.errors import InvalidValue, RedisFailure
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.keys import hashed
from redis_kit.core.primitive import with_own_init
from redis_kit.core.steps import Sleep
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import seconds
from redis_kit.throttling.engine.base import RETRY, Asked, BaseThrottle, asking
from redis_kit.throttling.engine.decide import Call, Mode, Outcome, Reservation, decide, settle
from redis_kit.throttling.rules import Rules, reset_flow
from redis_kit.throttling.signals import throttled
from redis_kit.throttling.statistics import Offender, read_offenders
from redis_kit.throttling.values import Decision

TIMEOUT = (0.0, 31_536_000.0)  # of acquire(): up to a year; None waits without limit
JITTER = 0.1  # seconds
MOST_REGISTERED = 1000  # throttles that the dashboard can list; beyond that the oldest one is dropped


@with_own_init
class Throttle(BaseThrottle):
    """A limit on how often each identity may do something, shared by all processes.

    - ``rates``: see the grammar of rates. With several, a call is counted by all of them or by none. A refused call is
      never counted.
    - ``strategy``: gcra, token_bucket, fixed_window, sliding_counter, sliding_log, or a dotted path.
    - ``on_failure``: what to answer while the server is unavailable: open, closed or local.
    - ``shadow``: refuses nothing, and counts what it would refuse as refused.
    - ``ban``: bans identities that are refused too often; nobody in shadow mode.
    - ``clock``: returns the seconds to decide by instead of the server's clock, for tests and replays.

    A throttle stores nothing about identities except the refusals of the last second, so build it once and share it.
    Raises InvalidRate, InvalidName and InvalidValue for wrong arguments.
    """

    def _prepare(self) -> None:
        super()._prepare()
        registered.pop((self.using, self.name), None)
        registered[self.using, self.name] = self
        if len(registered) > MOST_REGISTERED:
            registered.pop(next(iter(registered)), None)

    def hit(self, identity: str | int, *, cost: int = 1) -> Decision:
        """Count a call if every rate has room for it, and return the decision.

        ``identity`` is a non-empty string or an integer. The server stores its keyed hash, and for refused identities
        what ``OFFENDERS`` allows. A ``cost`` above the smallest burst is always refused, and 0 counts nothing. Takes
        one round trip, or none while a refusal of the identity is remembered. If the server is unavailable, the failure
        policy answers. Sends the signal ``throttled`` for a refusal.
        """
        # Not by reserve_flow(): that takes a tenth longer, and twice as long for a refusal that is remembered.
        checked = self.checked(identity, cost)
        decision = self.early_decision(checked, cost)
        if decision is None:
            call = Call(self, checked, cost)
            outcomes = self.run_flow(decide([call]), **self._answers)
            decision = self._or_local(call, outcomes, consume=True).decision
        if not decision.allowed and throttled.receivers:
            _refusal(self, identity, decision).run(None)
        return decision

    async def ahit(self, identity: str | int, *, cost: int = 1) -> Decision:
        """See hit()."""
        checked = self.checked(identity, cost)
        decision = self.early_decision(checked, cost)
        if decision is None:
            call = Call(self, checked, cost)
            outcomes = await self.arun_flow(decide([call]), **self._answers)
            decision = self._or_local(call, outcomes, consume=True).decision
        if not decision.allowed and throttled.receivers:
            await _refusal(self, identity, decision).arun(None)
        return decision

    @asking
    def reserve(self, identity: str | int, *, cost: int = 1) -> Flow[Reservation]:
        """Count a call whose cost is known only afterwards, at the highest ``cost`` that it may have.

        Call its ``settle()`` when the cost is known. See hit() and Reservation.
        """
        return self.reserve_flow(identity, cost)

    @asking
    def acquire(self, identity: str | int, *, cost: int = 1, timeout: float | None = None) -> Flow[Decision]:
        """Wait until a call is allowed, for at most ``timeout`` seconds, without limit by default.

        Meant for tasks and outgoing calls. Sleeps as long as the decision says, and up to 0.1 s longer, so that waiting
        callers don't all ask at once. Takes one round trip each time. Returns the refusal at once if the timeout is too
        short. Only that counts as a refusal; it does not count towards a ban.
        """
        call, deadline = Call(self, self.checked(identity, cost), cost), _deadline(timeout)
        while not (decision := (yield from self._decide(call, Mode.WAIT)).decision):
            pause = _pause(decision, deadline)
            if pause is None:
                refusal = yield from self._decide(call, Mode.GIVE_UP)
                return (yield from self.signal_flow(identity, refusal)).decision
            yield Sleep(pause)
        return decision

    @asking
    def peek(self, identity: str | int, *, cost: int = 1) -> Flow[Decision]:
        """Return what ``hit()`` would return, without counting. One round trip."""
        return (yield from self.peek_flow(identity, cost)).decision

    @operation
    def reset(self, identity: str | int) -> Flow[bool]:
        """Forget all calls of an identity and its automatic ban. Return whether there were any. One round trip.

        Other processes may repeat a refusal that they remember for up to ``REMEMBER`` seconds. Raises RedisUnavailable.
        """
        checked = self.checked(identity, 1)
        return reset_flow(self, hashed(checked), checked)

    @operation
    def offenders(self, limit: int = 20) -> Flow[list[Offender]]:
        """Return the identities that were refused most often, at most ``limit`` of them (1 to 100). One round trip.

        Raises InvalidValue and RedisUnavailable.
        """
        return read_offenders(self, limit)

    @property
    def wait(self) -> NoReturn:
        """Raise AttributeError that names acquire()."""
        raise AttributeError("A throttle has no wait(): call acquire(identity, timeout=...), which waits for its turn.")

    @property
    def rules(self) -> Rules:
        """The rules that operators set for a limited time: bans, exemptions and overrides."""
        return Rules(self)

    def when_unavailable(self, call: Call["Throttle"], error: RedisFailure, *, consume: bool = True) -> Outcome:
        """Return the answer of the failure policy to a call."""
        return self._or_local(call, self._answer(error, self._answers), consume=consume)

    def reserve_flow(self, identity: str | int, cost: int = 1) -> Flow[Reservation]:
        """See reserve(). A flow without a client, as those that follow."""
        call = Call(self, self.checked(identity, cost), cost)
        outcome = yield from self._decide(call, Mode.COUNT)
        return Reservation(call, (yield from self.signal_flow(identity, outcome)))

    def peek_flow(self, identity: str | int, cost: int = 1) -> Flow[Outcome]:
        """See peek()."""
        return self._decide(Call(self, self.checked(identity, cost), cost), Mode.LOOK)

    def signal_flow(self, identity: str | int, outcome: Outcome) -> Flow[Outcome]:
        """Send the signal ``throttled`` if the outcome is a refusal, and return the outcome."""
        if not outcome.decision.allowed and throttled.receivers:
            yield _refusal(self, identity, outcome.decision)
        return outcome

    def _decide(self, call: Call["Throttle"], mode: Mode) -> Flow[Outcome]:
        """Decide without the server if that is possible. Only a count uses the refusals that the process remembers."""
        if mode is Mode.COUNT:
            decision = self.early_decision(call.identity, call.cost)
        else:
            decision = self.constant_decision(call.cost)
            self.unreported += decision is not None and mode is Mode.GIVE_UP
        if decision is not None:
            return Outcome(decision)
        outcomes = yield Asked(self, decide([call], mode), **self._answers)
        return self._or_local(call, outcomes, consume=mode is not Mode.LOOK)

    @cached_property
    def _answers(self) -> dict[str, list[Outcome]]:
        return {
            "if_open": [Outcome(self.answer(True, "outage"))],
            "if_closed": [Outcome(self.answer(self.shadow, "outage", RETRY))],
            "if_local": [],
        }

    def _or_local(self, call: Call["Throttle"], outcomes: list[Outcome], *, consume: bool) -> Outcome:
        if outcomes:
            return outcomes[0]
        decision = self.local_buckets.decide(call.identity, call.cost, consume=consume)
        allowed = decision.allowed or self.shadow
        return Outcome(decision._replace(allowed=allowed, reason="local"))

    areserve = twin(reserve)
    aacquire = twin(acquire)
    apeek = twin(peek)
    areset = twin(reset)
    aoffenders = twin(offenders)


#: The throttles that this process has built: the last one of each connection and name.
registered: dict[tuple[str, str], Throttle] = {}


def _deadline(timeout: float | None) -> float:
    return math.inf if timeout is None else monotonic() + seconds("timeout", timeout, TIMEOUT)


def _pause(decision: Decision, deadline: float) -> float | None:
    """Return how long to sleep before the next attempt; None if the call must not wait that long."""
    wait, left = decision.retry_after, deadline - monotonic()
    if wait > left or math.isinf(wait):
        return None
    return min(wait + random() * min(wait / 10, JITTER), left)  # noqa: S311 -- spreads calls


def _refusal(throttle: Throttle, identity: str | int, decision: Decision) -> LocalCall:
    return sending(throttled, Throttle, throttle=throttle, identity=identity, decision=decision)


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
            outcomes[key] = Outcome(decision)
    if not all(outcome.decision.allowed for outcome in outcomes.values()):
        return outcomes | {key: _unasked(call) for key, call in rest.items()}, {}
    if len({(call.throttle.using, call.throttle.clock) for call in rest.values()}) > 1:
        raise InvalidValue("Throttles that decide together must use one connection and one clock.")
    return outcomes, rest


def _unasked(call: Call[Throttle]) -> Outcome:
    return Outcome(call.throttle.answer(True, "unasked"))


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
