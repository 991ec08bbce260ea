"""A throttle: how often each of its callers may come."""

import math
from functools import cached_property
from time import monotonic
from typing import Any

from redis_kit.core import scripts
from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Sleep
from redis_kit.throttling.engine import refusal_cache
from redis_kit.throttling.engine.base import RETRY, Limits
from redis_kit.throttling.engine.decide import Asked, Outcome, decide
from redis_kit.throttling.engine.registry import register
from redis_kit.throttling.engine.reservation import Reservation
from redis_kit.throttling.rules.rules import Rules
from redis_kit.throttling.signals import throttled
from redis_kit.throttling.values.decision import Decision

RESET = scripts.load("redis_kit.throttling", "reset")


class Throttle(Limits):
    """A limit on how often each caller may do something, the same for all processes.

    ``rates`` as in the grammar of rates; with several, a call counts against all of them or against none, and a
    refused call counts against none. ``strategy`` is gcra, token_bucket, fixed_window, sliding_counter, sliding_log or
    a dotted path. With ``shadow`` nothing is refused, and what would have been is counted as refused. ``ban`` shuts
    callers out who are refused too often. ``clock`` returns seconds to decide by instead of the server's clock, for
    tests and replays. Holds no state of callers but the refusals of the last second, so build it once and share it.
    Raises InvalidRate, InvalidName and InvalidValue for wrong arguments.
    """

    def _prepare(self) -> None:
        super()._prepare()
        register(self)

    def hit(self, identity: str | int, *, cost: int = 1) -> Decision:
        """Count a call of this caller if every rate has room for it, and say so.

        One round trip, none while a refusal of the same caller is remembered. ``identity`` is text that is not empty,
        or a whole number; the server sees its keyed hash, and of callers that were refused what ``OFFENDERS`` allows.
        ``cost`` is from 1 to the smallest burst. An outage of the server is answered by the failure policy. Sends the
        signal ``throttled`` on a refusal.
        """
        caller = self.checked(identity, cost)
        decision = self.decided(caller, cost)
        if decision is None:
            decision = self._ask(Asked(self, caller, cost)).decision
        if not decision.allowed and throttled.receivers:
            throttled.send_robust(Throttle, throttle=self, identity=identity, decision=decision)
        return decision

    async def ahit(self, identity: str | int, *, cost: int = 1) -> Decision:
        """See hit()."""
        call = Asked(self, self.checked(identity, cost), cost)
        return (await self.atell(identity, await self._atake(call))).decision

    def reserve(self, identity: str | int, *, cost: int = 1) -> Reservation:
        """Count a call of which the cost is known only afterwards, and settle it then.

        ``cost`` is what it may come to. See hit(), and Reservation.
        """
        call = Asked(self, self.checked(identity, cost), cost)
        return Reservation(call, self.tell(identity, self._take(call)))

    async def areserve(self, identity: str | int, *, cost: int = 1) -> Reservation:
        """See reserve()."""
        call = Asked(self, self.checked(identity, cost), cost)
        return Reservation(call, await self.atell(identity, await self._atake(call)))

    def wait(self, identity: str | int, *, cost: int = 1, timeout: float | None = None) -> Decision:
        """Sleep until a call of this caller passes, for at most ``timeout`` seconds, for ever without.

        For tasks and for calls that go out. Sleeps exactly as long as it is told to, so it asks again only where
        another took its place. Returns the refusal at once where the time can't be enough. See hit(): each try is one.
        """
        deadline = None if timeout is None else monotonic() + timeout
        while not (decision := self.hit(identity, cost=cost)):
            if _too_long(decision, deadline):
                return decision
            Sleep(decision.retry_after).run(None)
        return decision

    async def await_(self, identity: str | int, *, cost: int = 1, timeout: float | None = None) -> Decision:
        """See wait(); the name is spelt so because ``await`` is a keyword."""
        deadline = None if timeout is None else monotonic() + timeout
        while not (decision := await self.ahit(identity, cost=cost)):
            if _too_long(decision, deadline):
                return decision
            await Sleep(decision.retry_after).arun(None)
        return decision

    def peek(self, identity: str | int, *, cost: int = 1) -> Decision:
        """Say what ``hit()`` would answer, and count nothing. One round trip."""
        call = Asked(self, self.checked(identity, cost), cost)
        decision = self.same_for_all()
        if decision is not None:
            return decision
        return self._or_local(call, self._run(decide([call], consume=False), **self._answers)).decision

    async def apeek(self, identity: str | int, *, cost: int = 1) -> Decision:
        """See peek()."""
        call = Asked(self, self.checked(identity, cost), cost)
        decision = self.same_for_all()
        if decision is not None:
            return decision
        return self._or_local(call, await self._arun(decide([call], consume=False), **self._answers)).decision

    def reset(self, identity: str | int) -> bool:
        """Forget every call of this caller, and a ban that they led to; True when there was one. One round trip.

        Other processes that remember a refusal of it go on refusing for up to ``REMEMBER`` seconds. Raises
        RedisUnavailable.
        """
        return self._run(self._reset(self.checked(identity, 1)))

    async def areset(self, identity: str | int) -> bool:
        """See reset()."""
        return await self._arun(self._reset(self.checked(identity, 1)))

    @property
    def rules(self) -> Rules:
        """What operators set for a while: bans, exemptions and other rates."""
        return Rules(self)

    def carry_out(self, steps: Flow[Any], **answers: Any) -> Any:
        """Carry out a flow, with the answers of the failure policies given, or else raising."""
        return self._run(steps, **answers)

    async def acarry_out(self, steps: Flow[Any], **answers: Any) -> Any:
        """See carry_out()."""
        return await self._arun(steps, **answers)

    def without_server(self, call: Asked, error: RedisFailure) -> Outcome:
        """Return what the failure policy answers a call."""
        return self._or_local(call, self._answer(error, self._answers), consume=True)

    def _take(self, call: Asked) -> Outcome:
        decision = self.decided(call.caller, call.cost)
        if decision is not None:
            return Outcome(decision, 0, self.counting)
        return self._ask(call)

    def _ask(self, call: Asked) -> Outcome:
        return self._or_local(call, self._run(decide([call], consume=True), **self._answers), consume=True)

    async def _atake(self, call: Asked) -> Outcome:
        decision = self.decided(call.caller, call.cost)
        if decision is not None:
            return Outcome(decision, 0, self.counting)
        return self._or_local(call, await self._arun(decide([call], consume=True), **self._answers), consume=True)

    @cached_property
    def _answers(self) -> dict[str, list[Outcome]]:
        found = {"open": self.answer(True, "outage"), "closed": self.answer(self.shadow, "outage", RETRY)}
        return {"if_local": []} | {f"if_{name}": [Outcome(one, 0, self.counting)] for name, one in found.items()}

    def _or_local(self, call: Asked, outcomes: list[Outcome], *, consume: bool = False) -> Outcome:
        if outcomes:
            return outcomes[0]
        decision = self.local.decide(call.caller, call.cost, consume=consume)
        allowed = decision.allowed or self.shadow
        return Outcome(decision._replace(allowed=allowed, reason="local"), 0, self.counting)

    def _reset(self, caller: str) -> Flow[bool]:
        state, standing, _, _, _, rules = self.keys(caller)
        removed = yield RESET([state, standing, rules], [self.label(caller)])
        refusal_cache.forget(self.id, caller)
        self.local.forget(caller)
        return bool(removed)

    def tell(self, identity: str | int, outcome: Outcome) -> Outcome:
        """Send the signal ``throttled`` where the outcome is a refusal, and return it."""
        if not outcome.decision.allowed and throttled.receivers:
            throttled.send_robust(Throttle, throttle=self, identity=identity, decision=outcome.decision)
        return outcome

    async def atell(self, identity: str | int, outcome: Outcome) -> Outcome:
        """See tell()."""
        if not outcome.decision.allowed and throttled.receivers:
            await throttled.asend_robust(Throttle, throttle=self, identity=identity, decision=outcome.decision)
        return outcome


def _too_long(decision: Decision, deadline: float | None) -> bool:
    return decision.retry_after > (math.inf if deadline is None else deadline - monotonic()) or math.isinf(
        decision.retry_after
    )
