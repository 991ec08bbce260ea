"""What a throttle is: its name, rates, strategy and policies, and the keys and arguments that follow from them."""

import math
from collections.abc import Callable
from hashlib import blake2b
from struct import pack
from typing import Any

from redis_kit.core import conf
from redis_kit.core.errors import (
    CommandFailed,
    InvalidName,
    InvalidValue,
    KeyConflict,
    PermissionDenied,
    PoolExhausted,
    RedisFailure,
)
from redis_kit.core.keys import hashed
from redis_kit.core.primitive import Primitive
from redis_kit.core.settings import KitSettings
from redis_kit.core.text import shortened
from redis_kit.throttling.component import ThrottleSettings
from redis_kit.throttling.engine import refusal_cache
from redis_kit.throttling.engine.local_buckets import LocalBuckets, buckets
from redis_kit.throttling.strategies import base as strategies
from redis_kit.throttling.values.ban import Ban
from redis_kit.throttling.values.decision import UNLIMITED, Decision, Reason
from redis_kit.throttling.values.masking import masked
from redis_kit.throttling.values.rates import MICROSECONDS, parse

POLICIES = ("open", "closed", "local")
COMMON = ("override", "minutes", "offenders", "rules")  # keys that all callers of a throttle have in common
RETRY = 1.0  # seconds that the policy "closed" sends a caller away for; a server that is down is probed as often


class Limits(Primitive):
    """The base of Throttle: all of it that asks no server."""

    component, settings = "throttling", ThrottleSettings
    # It guards something else, which goes on whatever is wrong here.
    answered = (KeyConflict, PermissionDenied, CommandFailed)

    def __init__(
        self,
        name: str,
        rates: Any,
        *,
        strategy: str = "gcra",
        on_failure: str | None = None,
        shadow: bool = False,
        ban: Ban | None = None,
        clock: Callable[[], float] | None = None,
        using: str = "default",
    ) -> None:
        super().__init__(name, using=using)
        if on_failure not in (None, *POLICIES):
            raise InvalidValue(f"on_failure must be one of {', '.join(POLICIES)}, or None, not {on_failure!r}.")
        if not (ban is None or isinstance(ban, Ban)):
            raise InvalidValue(f"ban must be a Ban or None, not {ban!r}.")
        self.rates, self.strategy, self.on_failure = parse(rates), strategy, on_failure
        self.shadow, self.ban, self.clock = shadow, ban, clock
        self.limited = [rate for rate in self.rates if rate.limit]
        self.counting = strategies.load(strategy)(self.limited)
        self.fresh = ban.within if ban else math.inf  # seconds for which refusals from memory count for anything
        self._bases: tuple[str | None, str, tuple[str, ...]] = (None, "", ())
        self.unseen = 0  # refusals from memory that the server was not told of yet
        self._prepare()

    def _prepare(self) -> None:
        self._most = min((rate.burst for rate in self.limited), default=UNLIMITED)
        self._tightest = min(self.limited, key=lambda rate: rate.burst, default=None)
        never = next((rate for rate in self.rates if not rate.limit), None)
        self._open = Decision(True, self._most, self._most, 0.0, 0.0)  # no rate: none was asked
        self._never = Decision(False, 0, 0, math.inf, math.inf, never) if never else None
        # Other rates or another strategy keep other numbers, so they keep them under other keys.
        kind = "; ".join([self.strategy, *map(str, self.limited)])
        self._kind = blake2b(kind.encode(), digest_size=3).hexdigest()
        self.id = f"{self.using} {self._kind} {self.encoded}"
        numbers = self.counting.numbers
        ban = self.ban.text if self.ban else ""
        self.script = strategies.script("decide", self.counting.lua)
        self.fixed: tuple[str, bytes] = ("shadow" if self.shadow else ban, pack(f"<{len(numbers)}d", *numbers))

    @property
    def local(self) -> LocalBuckets:
        """Return the buckets of this process, for while the server is away."""
        return buckets(f"{self.using} {self.key(self._kind)}", self.limited)

    def policy(self) -> str:
        """Return what to answer while the server is away: ``open``, ``closed`` or ``local``."""
        return self.on_failure or super().policy()

    def keys(self, caller: str) -> list[str]:
        """Return the keys of a decision on a caller, as decide.lua names them."""
        return self.keys_of(hashed(caller))

    def keys_of(self, who: str) -> list[str]:
        """Return the keys of a decision on the caller with this hash."""
        prefix, base, common = self._bases
        if prefix != conf.section(KitSettings).PREFIX:
            prefix, base = conf.section(KitSettings).PREFIX, self.key("")
            common = tuple(f"{base}{part}" for part in COMMON)
            self._bases = prefix, base, common  # at once, since threads share it
        return [f"{base}{who}{self._kind}", f"{base}{who}", *common]

    def label(self, caller: str) -> str:
        """Return how lists on the server name a caller: its hash, and as much of itself as the settings allow."""
        return self.label_of(hashed(caller), caller)

    def label_of(self, who: str, caller: str) -> str:
        """See label(), where its hash is known."""
        shown = conf.section(ThrottleSettings).OFFENDERS
        text = caller if shown == "plain" else masked(caller) if shown == "masked" else ""
        return f"{who} {text if text.isascii() else text.encode(errors='replace').decode()}"  # no half surrogate pairs

    def answer(self, allowed: bool, reason: Reason, seconds: float = 0.0) -> Decision:
        """Return a decision that was not made by counting."""
        if allowed:
            return self._open._replace(reason=reason)
        return Decision(False, self._most, 0, seconds, seconds, self._tightest, reason)

    def now(self) -> int | str:
        """Return the moment to decide by, in microseconds: that of its own clock, or "" for the server's."""
        return "" if self.clock is None else round(self.clock() * MICROSECONDS)

    def take_unseen(self) -> int:
        """Return how many refusals the server was not told of yet, and count from 0 again."""
        unseen, self.unseen = self.unseen, 0
        return unseen

    def decided(self, caller: str, cost: int) -> Decision | None:
        """Return the decision where no server is needed for it."""
        decision = self.same_for_all()
        if decision is None and self.clock is None:
            decision = refusal_cache.recall((self.id, caller, cost))
        if decision is not None and not decision.allowed:
            self.unseen += 1  # told to the server with the next call that reaches it
        return decision

    def same_for_all(self) -> Decision | None:
        """Return the decision that is the same for every caller, or None."""
        if not self.rates or not conf.section(ThrottleSettings).ENABLED:
            return self._open
        if self._never is not None and self.shadow:
            return self._open._replace(reason="shadow")
        return self._never

    def checked(self, identity: str | int, cost: int) -> str:
        """Return an identity as text, at most 128 characters. Raises InvalidName and InvalidValue."""
        if type(cost) is not int or not 1 <= cost <= self._most:
            raise InvalidValue(
                f"cost must be a whole number from 1 to {self._most} for the throttle {self.name!r}, not {cost!r}; "
                "a call that costs more could never pass."
            )
        if isinstance(identity, int) and not isinstance(identity, bool):
            return str(identity)
        if not isinstance(identity, str) or not identity:
            raise InvalidName(
                f"The identity for the throttle {self.name!r} must be text that is not empty, or a whole number, "
                f"not {shortened(identity)}."
            )
        # What is remembered is bounded in bytes too.
        return identity if len(identity) <= 128 else hashed(identity)

    def _answer(self, error: RedisFailure, answers: dict[str, Any]) -> Any:
        if not isinstance(error, PoolExhausted) or "if_local" not in answers:
            return super()._answer(error, answers)
        self._note(error, "local")  # the server is well, so no policy for outages may let the call pass uncounted
        return answers["if_local"]
