"""Rules that operators set on a throttle while it runs: bans, exemptions and other rates, each for a while."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from redis_kit.core import connections, flow
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.throttling.rules import storage
from redis_kit.throttling.rules.storage import Rule

if TYPE_CHECKING:
    from redis_kit.throttling.throttles.throttle import Throttle

__all__ = ["Rule", "Rules", "counts"]

MOST = 10_000  # rules of callers

Found = list[Rule]  # Rules.list hides the type's name inside the class


class Rules:
    """What holds for some callers of a throttle, or for everybody, in place of its own rates, until it ends.

    A rule holds for all throttles of this name and connection, in every process. It takes hold at the next call that
    asks the server: this process forgets at once what it remembers of refusals, others ask again within ``REMEMBER``
    seconds. A caller has one rule, the last one set; its own goes before that for everybody.

    ``identity`` is what the throttle's ``hit()`` is called with; ``who``, in its place, is the hash by which lists name
    a caller. Raises InvalidName and InvalidValue for wrong arguments, and RedisUnavailable.
    """

    def __init__(self, throttle: "Throttle") -> None:
        self.throttle = throttle

    def ban(self, identity: str | int | None = None, seconds: float = 0, *, who: str = "") -> Rule:
        """Refuse every call of a caller for so many seconds, up to 366 days, and return the rule. One round trip."""
        return self._set(storage.ban(self.throttle, self._caller(identity, who), seconds))

    async def aban(self, identity: str | int | None = None, seconds: float = 0, *, who: str = "") -> Rule:
        """See ban()."""
        return await self._aset(storage.ban(self.throttle, self._caller(identity, who), seconds))

    def exempt(self, identity: str | int | None = None, seconds: float = 0, *, who: str = "") -> Rule:
        """Let every call of a caller pass for so many seconds, up to 366 days, without counting it. One round trip."""
        return self._set(storage.exempt(self.throttle, self._caller(identity, who), seconds))

    async def aexempt(self, identity: str | int | None = None, seconds: float = 0, *, who: str = "") -> Rule:
        """See exempt()."""
        return await self._aset(storage.exempt(self.throttle, self._caller(identity, who), seconds))

    def override(self, rates: object, seconds: float, identity: str | int | None = None, *, who: str = "") -> Rule:
        """Give a caller, or without one everybody, other rates for so many seconds, up to 366 days.

        ``rates`` as in the grammar of rates, none of them 0, counted by the throttle's own strategy. A caller with
        rates of its own starts anew with them, and again when they are lifted. Rates for everybody find what callers
        have used up so far. One round trip. Raises InvalidRate.
        """
        return self._set(storage.override(self.throttle, self._target(identity, who), rates, seconds))

    async def aoverride(
        self, rates: object, seconds: float, identity: str | int | None = None, *, who: str = ""
    ) -> Rule:
        """See override()."""
        return await self._aset(storage.override(self.throttle, self._target(identity, who), rates, seconds))

    def lift(self, identity: str | int | None = None, *, who: str = "") -> bool:
        """End the rule of a caller, or without one the rates for everybody; True when there was one. One round trip.

        Ends a ban that the throttle imposed too, and with it the count of bans that makes the next one longer.
        """
        target = self._target(identity, who)
        return bool(self.throttle.carry_out(storage.lift(self.throttle, target)))

    async def alift(self, identity: str | int | None = None, *, who: str = "") -> bool:
        """See lift()."""
        target = self._target(identity, who)
        return bool(await self.throttle.acarry_out(storage.lift(self.throttle, target)))

    def of(self, identity: str | int | None = None, *, who: str = "") -> Rule | None:
        """Return the rule of a caller, or without one that for everybody; None where there is none. One round trip."""
        found: Rule | None = self.throttle.carry_out(storage.read(self.throttle, self._target(identity, who)))
        return found

    async def aof(self, identity: str | int | None = None, *, who: str = "") -> Rule | None:
        """See of()."""
        found: Rule | None = await self.throttle.acarry_out(storage.read(self.throttle, self._target(identity, who)))
        return found

    def list(self, limit: int = 100) -> Found:
        """Return the rules, that for everybody first, then those of callers that end first; with the throttle's bans.

        At most ``limit``, 1 to 10,000. Two round trips.
        """
        found: Found = self.throttle.carry_out(storage.listed(self.throttle, _limit(limit)))
        return found

    async def alist(self, limit: int = 100) -> Found:
        """See list()."""
        found: Found = await self.throttle.acarry_out(storage.listed(self.throttle, _limit(limit)))
        return found

    def _set(self, steps: Flow[Rule]) -> Rule:
        rule: Rule = self.throttle.carry_out(steps)
        return rule

    async def _aset(self, steps: Flow[Rule]) -> Rule:
        rule: Rule = await self.throttle.acarry_out(steps)
        return rule

    def _target(self, identity: str | int | None, who: str) -> storage.Target:
        return storage.target(self.throttle, identity, who)

    def _caller(self, identity: str | int | None, who: str) -> storage.Target:
        found = self._target(identity, who)
        if not found.who:
            raise InvalidValue("Say whose calls are meant: give identity, or who, the hash by which lists name it.")
        return found


def counts(throttles: Sequence["Throttle"]) -> dict["Throttle", int]:
    """Return how many rules each throttle has, by throttle. One round trip for each connection that they use."""
    found: dict[Throttle, int] = {}
    for using in dict.fromkeys(throttle.using for throttle in throttles):
        some = [throttle for throttle in throttles if throttle.using == using]
        found |= flow.run(_counts(some), connections.client(using))
    return found


def _counts(throttles: Sequence["Throttle"]) -> Flow[dict["Throttle", int]]:
    replies = yield Batch([storage.index(throttle, 0) for throttle in throttles])
    return {throttle: held for throttle, (held, _) in zip(throttles, replies, strict=True)}


def _limit(limit: int) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST:
        raise InvalidValue(f"limit must be a whole number from 1 to {MOST:,}, not {limit!r}.")
    return limit
