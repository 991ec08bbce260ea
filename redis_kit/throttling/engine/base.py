"""The base of Throttle: name, rates, strategy and policies, and the keys and arguments of scripts."""

import math
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from struct import pack
from typing import Any, Never, TypeVar

from redis_kit.core import conf, flow
from redis_kit.core.errors import (
    CommandFailed,
    ConfigurationError,
    InvalidName,
    InvalidRate,
    InvalidValue,
    KeyConflict,
    PermissionDenied,
    PoolExhausted,
    RedisFailure,
)
from redis_kit.core.flow import Flow, operation
from redis_kit.core.keys import hashed
from redis_kit.core.primitive import Primitive
from redis_kit.core.settings import KitSettings
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import is_whole
from redis_kit.core.values.rates import MICROSECONDS, parse
from redis_kit.throttling.engine import memory
from redis_kit.throttling.engine.memory import LocalBuckets, buckets
from redis_kit.throttling.identity import Shape, masked, without_secrets
from redis_kit.throttling.keys import SHARED, ThrottleKeys
from redis_kit.throttling.settings import ThrottlingSettings
from redis_kit.throttling.strategies import decide_one
from redis_kit.throttling.strategies import load as load_strategy
from redis_kit.throttling.values import UNLIMITED, Ban, Decision, Reason

POLICIES = ("open", "closed", "local")
RETRY = 1.0  # seconds to wait after a refusal by the policy "closed"; a server that is down is probed as often

_RATES = "The second argument is the rates: Throttle('login', '5/m')."
#: Names of arguments in other libraries, with ours.
HINTS = {
    **dict.fromkeys(("rate", "limit", "quota", "max_rate", "limits", "period", "per", "window"), _RATES),
    **dict.fromkeys(("key", "identity", "scope", "group"), "hit() takes the identity whose calls count."),
    **dict.fromkeys(("burst", "capacity"), "A rate states its burst: '5/m burst 10'."),
    "block": "Write shadow=True to count without refusing.",
    "cost": "hit() takes the cost of a call.",
}
AnyThrottle = TypeVar("AnyThrottle", bound="BaseThrottle")
Figures = TypeVar("Figures")


class BaseThrottle(Primitive):
    """The base of Throttle: everything except the calls that it counts."""

    component, settings, argument_hints = "throttling", ThrottlingSettings, HINTS
    # A throttle protects something else, which must go on even if the throttle's keys are wrong.
    answered = (KeyConflict, PermissionDenied, CommandFailed)

    def __init__(
        self,
        name: str,
        rates: Any = ...,
        *,
        strategy: str = "gcra",
        on_failure: str | None = None,
        shadow: bool = False,
        ban: Ban | None = None,
        clock: Callable[[], float] | None = None,
        using: str = "default",
        **unknown: Never,
    ) -> None:
        super().__init__(name, using=using, unknown=unknown)
        if rates is ...:
            given = ("name", name) if _is_rate(name) else (name, "5/m")
            raise TypeError(f"{type(self).__name__}() needs a name and rates: {type(self).__name__}{given!a}.")
        if isinstance(rates, str) and _is_rate(name) and not _is_rate(rates):
            raise InvalidRate(f"The name comes first: {type(self).__name__}({rates!a}, {name!a}).")
        if on_failure not in (None, *POLICIES):
            raise InvalidValue(f"on_failure must be one of {', '.join(POLICIES)}, or None, not {on_failure!r}.")
        if not isinstance(shadow, bool):
            raise InvalidValue(f"shadow must be True or False, not {shortened(shadow)}.")
        if not (clock is None or callable(clock)):
            raise InvalidValue(f"clock must be a function that returns seconds, or None, not {shortened(clock)}.")
        if not (ban is None or isinstance(ban, Ban)):
            raise InvalidValue(
                f"ban must be a Ban, such as Ban(after=5, within=60, seconds=600), or None, not {shortened(ban)}."
            )
        self.rates, self.strategy, self.on_failure = parse(rates), strategy, on_failure
        self.shadow, self.ban, self.clock = shadow, ban, clock
        self.counted_rates = [rate for rate in self.rates if rate.limit]
        self.algorithm = load_strategy(strategy)(self.counted_rates)
        self.ban_window = ban.within if ban else math.inf  # seconds for which cached refusals count towards a ban
        # The server has counted the refusal that is repeated, and counts the next call: these suffice for a ban.
        self._most_repeats = ban.after - 2 if ban else math.inf
        self._key_cache: tuple[str | None, str, tuple[str, ...]] = (None, "", ())
        self.unreported = 0  # refusals from the cache that the server has not counted yet
        #: How identities begin, by the keys of the views and policies that use the throttle; empty if none does.
        self.identity_shapes: dict[Shape, None] = {}
        self._prepare()

    def _prepare(self) -> None:
        self._largest_cost = min((rate.burst for rate in self.counted_rates), default=UNLIMITED)
        self._tightest = min(self.counted_rates, key=lambda rate: rate.burst, default=None)
        never = next((rate for rate in self.rates if not rate.limit), None)
        self._allowed = Decision(True, self._largest_cost, self._largest_cost, 0.0, 0.0)  # decided by no rate
        self._never = Decision(False, 0, 0, math.inf, math.inf, never) if never else None
        self._too_costly = Decision(False, self._largest_cost, 0, math.inf, math.inf, self._tightest)
        # Other rates or another strategy store other numbers, so they use other keys.
        kind = "; ".join([self.strategy, *map(str, self.counted_rates)])
        self._kind = blake2b(kind.encode(), digest_size=3).hexdigest()
        self.id = f"{self.using} {self._kind} {self.encoded}"
        numbers = self.algorithm.numbers
        if not all(map(is_whole, numbers)):
            owner = type(self.algorithm).__name__
            raise ConfigurationError(f"{owner}.numbers must be whole numbers, not {shortened(numbers)}.")
        ban = self.ban.text if self.ban else ""
        self.script = decide_one(self.algorithm.lua, len(numbers))
        # For decide.lua: the part of its argument between the numbers of a call and the entry of the identity.
        text = f"{self.algorithm.kind} {'shadow' if self.shadow else ban}\n"
        self.fixed_argument = pack(f"<{1 + len(numbers)}d", len(numbers), *numbers) + text.encode()

    @property
    def local_buckets(self) -> LocalBuckets:
        """Return the buckets of this process, for the failure policy ``local``."""
        return buckets(f"{self.using} {self.key(self._kind)}", self.counted_rates)

    def policy(self) -> str:
        """Return what to answer while the server is unavailable: ``open``, ``closed`` or ``local``."""
        return self.on_failure or super().policy()

    def keys(self, identity: str) -> ThrottleKeys:
        """Return the keys for an identity."""
        return self.keys_of(hashed(identity))

    def keys_of(self, identity_hash: str) -> ThrottleKeys:
        """Return the keys for the identity with this hash."""
        prefix, base, shared = self._key_cache
        if prefix != conf.section(KitSettings).PREFIX:
            prefix, base = conf.section(KitSettings).PREFIX, self.key("")
            shared = tuple(f"{base}{part}" for part in SHARED)
            self._key_cache = prefix, base, shared  # in one assignment, since threads share it
        keys = f"{base}{identity_hash}{self._kind}", f"{base}{identity_hash}", *shared
        return tuple.__new__(ThrottleKeys, keys)  # as ThrottleKeys(*keys), in two thirds of the time

    def entry(self, identity: str) -> str:
        """Return the entry of an identity in lists on the server: its hash, and what ``OFFENDERS`` allows to store."""
        return self.entry_of(hashed(identity), identity)

    def entry_of(self, identity_hash: str, identity: str) -> str:
        """Return the entry of an identity whose hash is already computed. See entry()."""
        stored = conf.section(ThrottlingSettings).OFFENDERS
        text = without_secrets(identity) if stored == "plain" else masked(identity) if stored == "masked" else ""
        return f"{identity_hash} {text if text.isascii() else text.encode(errors='replace').decode()}"  # no surrogates

    def answer(self, allowed: bool, reason: Reason, seconds: float = 0.0) -> Decision:
        """Return a decision that was not made by counting."""
        if allowed:
            return self._allowed._replace(reason=reason)
        return Decision(False, self._largest_cost, 0, seconds, seconds, self._tightest, reason)

    def now(self) -> int | str:
        """Return the time of the throttle's own clock in microseconds, or "" for the server's. Raises InvalidValue."""
        if self.clock is None:
            return ""
        seconds = self.clock()
        if not math.isfinite(seconds):
            raise InvalidValue(f"The clock of the throttle {self.name!r} must return seconds, not {seconds}.")
        return round(seconds * MICROSECONDS)

    def take_unreported(self) -> int:
        """Return how many refusals the server has not counted yet, and start again from 0."""
        unreported, self.unreported = self.unreported, 0
        return unreported

    def early_decision(self, identity: str, cost: int) -> Decision | None:
        """Return the decision if it can be made without the server, else None."""
        decision = self.constant_decision(cost)
        if decision is None and self.clock is None and not self.shadow:  # another throttle may share its memory
            decision = memory.recall((self.id, identity, cost), self._most_repeats)
        if decision is not None and not decision.allowed:
            self.unreported += 1  # reported with the next call that reaches the server
        return decision

    def constant_decision(self, cost: int) -> Decision | None:
        """Return the decision if it is the same for every identity, else None."""
        if not self.rates or not conf.section(ThrottlingSettings).ENABLED:
            return self._allowed
        refusal = self._too_costly if cost > self._largest_cost else self._never
        return self._allowed._replace(reason="shadow") if refusal is not None and self.shadow else refusal

    def check_cost(self, cost: Any) -> None:
        """Raise InvalidValue for a cost that a project states once for all calls, if it can't be right."""
        if type(cost) is not int or not 1 <= cost <= self._largest_cost:
            raise InvalidValue(
                f"cost must be a whole number from 1 to {self._largest_cost} for the throttle {self.name!r}, "
                f"not {shortened(cost)}."
            )

    def checked(self, identity: str | int, cost: int) -> str:
        """Return an identity as text, at most 128 characters. Raises InvalidName and InvalidValue."""
        if type(cost) is not int or cost < 0:
            raise InvalidValue(f"cost must be a whole number from 0, not {shortened(cost)}.")
        if isinstance(identity, int) and not isinstance(identity, bool):
            return str(identity)
        if not isinstance(identity, str) or not identity:
            raise InvalidName(
                f"The identity for the throttle {self.name!r} must be a non-empty string or an integer, "
                f"not {shortened(identity)}."
            )
        # Bounds the memory of what is cached for it.
        return identity if len(identity) <= 128 else hashed(identity)

    def _answer(self, error: RedisFailure, answers: dict[str, Any]) -> Any:
        if not isinstance(error, PoolExhausted) or "if_local" not in answers:
            return super()._answer(error, answers)
        self._note(error, "local")  # the server works, so the policy for outages must not let calls pass uncounted
        return answers["if_local"]


class Asked:
    """A step of a flow without a client: what the server answers to a throttle's flow, or the failure policy."""

    __slots__ = ("answers", "steps", "throttle")

    def __init__(self, throttle: BaseThrottle, steps: Flow[Any], **answers: Any) -> None:
        self.throttle, self.steps, self.answers = throttle, steps, answers

    def run(self, client: Any) -> Any:
        """Carry out the flow."""
        return self.throttle.run_flow(self.steps, **self.answers)

    async def arun(self, client: Any) -> Any:
        """See run()."""
        return await self.throttle.arun_flow(self.steps, **self.answers)


class _WithoutClient:
    @staticmethod
    def run_flow(steps: Flow[Any]) -> Any:
        return flow.run(steps, None)

    @staticmethod
    async def arun_flow(steps: Flow[Any]) -> Any:
        return await flow.arun(steps, None)


#: For an operation whose flow has no client: its steps ask the server of a throttle, see Asked.
asking = operation(over=lambda using: _WithoutClient)


def by_connection(throttles: Sequence[AnyThrottle]) -> dict[str, list[AnyThrottle]]:
    """Return the throttles of each connection."""
    grouped: dict[str, list[AnyThrottle]] = {}
    for throttle in throttles:
        grouped.setdefault(checked_throttle(throttle).using, []).append(throttle)
    return grouped


def read_together(
    throttles: Sequence[AnyThrottle], read: Callable[[list[AnyThrottle]], Flow[Mapping[AnyThrottle, Figures]]]
) -> Flow[dict[AnyThrottle, Figures]]:
    """Read something of throttles, for those of one connection together. A flow without a client."""
    figures: dict[AnyThrottle, Figures] = {}
    for of_connection in by_connection(throttles).values():
        figures |= yield Asked(of_connection[0], read(of_connection))
    return {throttle: figures[throttle] for throttle in throttles}


def _is_rate(text: str) -> bool:
    try:
        return bool(parse(text))
    except InvalidRate:
        return False


def checked_throttle(value: Any) -> BaseThrottle:
    """Return a throttle. Raises InvalidValue for anything else, such as its name."""
    if not isinstance(value, BaseThrottle):
        raise InvalidValue(f"Give a throttle, not {shortened(value)}. policy() returns that of a policy.")
    return value
