"""A throttle: how often each of its callers may come."""

import math
from hashlib import blake2b
from time import monotonic
from typing import Any

from redis_kit.core import conf
from redis_kit.core.errors import (
    InvalidName,
    InvalidValue,
    KeyConflict,
    PermissionDenied,
    RedisFailure,
    RedisUnavailable,
)
from redis_kit.core.flow import Flow
from redis_kit.core.keys import hashed
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Call
from redis_kit.throttling import memory, strategies
from redis_kit.throttling.component import ThrottleSettings
from redis_kit.throttling.decision import UNLIMITED, Decision
from redis_kit.throttling.local import LocalBuckets, buckets
from redis_kit.throttling.rates import parse
from redis_kit.throttling.signals import throttled

POLICIES = ("open", "closed", "local")
RETRY = 1.0  # seconds that the policy "closed" sends a caller away for; a server that is down is probed as often
REGISTERED = 1000  # throttles that the dashboard knows; then the oldest name is forgotten

_registered: dict[str, "Throttle"] = {}


class Throttle(Primitive):
    """A limit on how often each caller may do something, the same for all processes.

    ``rates`` as in the grammar of rates; with several, a call counts against all of them or against none, and a
    refused call counts against none. Holds no state of callers but the refusals of the last second, so build it once
    and share it. Raises InvalidRate, InvalidName and InvalidValue for wrong arguments.
    """

    component, settings = "throttling", ThrottleSettings

    def __init__(
        self, name: str, rates: Any, *, strategy: str = "gcra", on_failure: str | None = None, using: str = "default"
    ) -> None:
        super().__init__(name, using=using)
        if on_failure not in (None, *POLICIES):
            raise InvalidValue(f"on_failure must be one of {', '.join(POLICIES)}, or None, not {on_failure!r}.")
        self.rates, self.strategy, self.on_failure = parse(rates), strategy, on_failure
        self._limited = [rate for rate in self.rates if rate.limit]
        self._strategy = strategies.load(strategy)(self._limited)
        self._most = min((rate.burst for rate in self._limited), default=UNLIMITED)
        self._prepare()
        _register(self)

    def _prepare(self) -> None:
        tightest = min(self._limited, key=lambda rate: rate.burst, default=None)
        never = next((rate for rate in self.rates if not rate.limit), None)
        self._open = Decision(True, self._most, self._most, 0.0, 0.0)  # no rate: none was asked
        self._never = Decision(False, 0, 0, math.inf, math.inf, never) if never else None
        closed = Decision(False, self._most, 0, RETRY, RETRY, tightest)
        self._answers = {"if_open": self._open, "if_closed": closed, "if_local": None}
        # Other rates or another strategy keep other numbers, so they keep them under other keys.
        kind = "; ".join([self.strategy, *map(str, self._limited)])
        self._kind = blake2b(kind.encode(), digest_size=4).hexdigest()
        self._id = f"{self.using} {self._kind} {self.encoded}"
        self._unseen = 0

    @property
    def _local(self) -> LocalBuckets:
        return buckets(f"{self.using} {self.key(self._kind)}", self._limited)

    def policy(self) -> str:
        """Return what to answer while the server is away: ``open``, ``closed`` or ``local``."""
        return self.on_failure or super().policy()

    def hit(self, identity: str | int, *, cost: int = 1) -> Decision:
        """Count a call of this caller if every rate has room for it, and say so.

        One round trip, none while a refusal of the same caller is remembered. ``identity`` is text that is not empty,
        or a whole number; the server sees its keyed hash. ``cost`` is from 1 to the smallest burst. An outage of the
        server is answered by the failure policy. Sends the signal ``throttled`` on a refusal.
        """
        caller = self._checked(identity, cost)
        decision = self._known(caller, cost)
        if decision is None:
            decision = self._run(self._hit(caller, cost), **self._answers)
        if decision is None:
            decision = self._local.decide(caller, cost, consume=True)
        if not decision.allowed and throttled.receivers:
            throttled.send_robust(Throttle, throttle=self, identity=identity, decision=decision)
        return decision

    async def ahit(self, identity: str | int, *, cost: int = 1) -> Decision:
        """See hit()."""
        caller = self._checked(identity, cost)
        decision = self._known(caller, cost)
        if decision is None:
            decision = await self._arun(self._hit(caller, cost), **self._answers)
        if decision is None:
            decision = self._local.decide(caller, cost, consume=True)
        if not decision.allowed and throttled.receivers:
            await throttled.asend_robust(Throttle, throttle=self, identity=identity, decision=decision)
        return decision

    def peek(self, identity: str | int, *, cost: int = 1) -> Decision:
        """Say what ``hit()`` would answer, and count nothing. One round trip."""
        caller = self._checked(identity, cost)
        decision = self._fixed()
        if decision is None:
            decision = self._run(self._peek(caller, cost), **self._answers)
        return self._local.decide(caller, cost, consume=False) if decision is None else decision

    async def apeek(self, identity: str | int, *, cost: int = 1) -> Decision:
        """See peek()."""
        caller = self._checked(identity, cost)
        decision = self._fixed()
        if decision is None:
            decision = await self._arun(self._peek(caller, cost), **self._answers)
        return self._local.decide(caller, cost, consume=False) if decision is None else decision

    def reset(self, identity: str | int) -> bool:
        """Forget every call of this caller; True when there was one. One round trip.

        Other processes that remember a refusal of it go on refusing for up to ``REMEMBER`` seconds. Raises
        RedisUnavailable.
        """
        return self._run(self._reset(self._checked(identity, 1)))

    async def areset(self, identity: str | int) -> bool:
        """See reset()."""
        return await self._arun(self._reset(self._checked(identity, 1)))

    def _hit(self, caller: str, cost: int) -> Flow[Decision]:
        asked = monotonic()
        unseen, self._unseen = self._unseen, 0
        try:
            reply = yield self._script(caller, cost, 1, unseen)
        except RedisFailure:
            self._unseen += unseen
            raise
        decision = self._strategy.decision(reply, cost)
        if not decision.allowed and (seconds := conf.section(ThrottleSettings).REMEMBER):
            memory.remember((self._id, caller, cost), decision, asked=asked, seconds=seconds)
        return decision

    def _peek(self, caller: str, cost: int) -> Flow[Decision]:
        return self._strategy.decision((yield self._script(caller, cost, 0, 0)), cost)

    def _reset(self, caller: str) -> Flow[bool]:
        removed = yield Call("DEL", self._state(caller))
        memory.forget(self._id, caller)
        self._local.forget(caller)
        return bool(removed)

    def _script(self, caller: str, cost: int, consume: int, unseen: int) -> ScriptCall:
        keys = (self._state(caller), self.key("minutes"))
        return self._strategy.script(keys, (cost, consume, unseen, *self._strategy.arguments))

    def _state(self, caller: str) -> str:
        return self.key(f"{hashed(caller)}:{self._kind}")

    def _known(self, caller: str, cost: int) -> Decision | None:
        """Return the decision where no server is needed for it."""
        decision = self._fixed()
        if decision is None:
            decision = memory.recall((self._id, caller, cost))
        if decision is not None and not decision.allowed:
            self._unseen += 1  # told to the server with the next call that reaches it
        return decision

    def _fixed(self) -> Decision | None:
        """Return the decision that is the same for every caller."""
        if not self.rates or not conf.section(ThrottleSettings).ENABLED:
            return self._open
        return self._never

    def _checked(self, identity: str | int, cost: int) -> str:
        if isinstance(cost, bool) or not isinstance(cost, int) or not 1 <= cost <= self._most:
            raise InvalidValue(
                f"cost must be a whole number from 1 to {self._most} for the throttle {self.name!r}, not {cost!r}; "
                "a call that costs more could never pass."
            )
        if isinstance(identity, int) and not isinstance(identity, bool):
            return str(identity)
        if not isinstance(identity, str) or not identity:
            raise InvalidName(
                f"The identity for the throttle {self.name!r} must be text that is not empty, or a whole number, "
                f"not {ascii(identity)[:80]}."
            )
        # What is remembered is bounded in bytes too.
        return identity if len(identity) <= 128 else hashed(identity)

    def _answer(self, error: RedisFailure, answers: dict[str, Any]) -> Any:
        # A throttle guards something else: whatever is wrong with the server, that goes on by the policy.
        if answers and isinstance(error, (KeyConflict, PermissionDenied)):
            error = RedisUnavailable(str(error))
        return super()._answer(error, answers)


def registered() -> list[Throttle]:
    """Return the throttles that this process has built, the last of each name, in the order of their names."""
    return [throttle for _, throttle in sorted(_registered.copy().items())]


def _register(throttle: Throttle) -> None:
    _registered.pop(throttle.name, None)
    _registered[throttle.name] = throttle
    if len(_registered) > REGISTERED:
        _registered.pop(next(iter(_registered)), None)
