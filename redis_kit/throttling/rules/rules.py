"""Rules that operators set on a throttle for a limited time: bans, exemptions and overrides."""

from collections.abc import Sequence

from redis_kit.core import connections, flow
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.core.values.numbers import whole_number
from redis_kit.throttling.engine.base import AnyThrottle, BaseThrottle
from redis_kit.throttling.rules import storage
from redis_kit.throttling.rules.storage import Rule, Subject

LIMIT = 10_000  # identities with a rule

RuleList = list[Rule]  # inside the class, the method list() hides the type


class Rules:
    """The rules of a throttle, which replace its rates for one identity, or for all, until they end.

    A rule holds for all throttles of this name and connection, in every process. It takes effect at the next call that
    asks the server. This process forgets the refusals that it remembers; other processes ask again within ``REMEMBER``
    seconds. An identity has one rule, the last one that was set. It takes precedence over the override for all.

    ``identity`` is the argument of ``hit()``. ``identity_hash`` is the hash that lists show; give one of the two. All
    methods raise InvalidName and InvalidValue for wrong arguments, and RedisUnavailable.
    """

    def __init__(self, throttle: BaseThrottle) -> None:
        self.throttle = throttle

    def ban(self, identity: str | int | None = None, seconds: float = 0, *, identity_hash: str = "") -> Rule:
        """Refuse every call of an identity for a time of up to 366 days, and return the rule. One round trip."""
        return self._set(storage.ban(self.throttle, self._single(identity, identity_hash), seconds))

    async def aban(self, identity: str | int | None = None, seconds: float = 0, *, identity_hash: str = "") -> Rule:
        """See ban()."""
        return await self._aset(storage.ban(self.throttle, self._single(identity, identity_hash), seconds))

    def exempt(self, identity: str | int | None = None, seconds: float = 0, *, identity_hash: str = "") -> Rule:
        """Allow every call of an identity for a time of up to 366 days, without counting. One round trip."""
        return self._set(storage.exempt(self.throttle, self._single(identity, identity_hash), seconds))

    async def aexempt(self, identity: str | int | None = None, seconds: float = 0, *, identity_hash: str = "") -> Rule:
        """See exempt()."""
        return await self._aset(storage.exempt(self.throttle, self._single(identity, identity_hash), seconds))

    def override(
        self, rates: object, seconds: float, identity: str | int | None = None, *, identity_hash: str = ""
    ) -> Rule:
        """Set other rates for an identity, or without one for all identities, for a time of up to 366 days.

        ``rates`` follow the grammar of rates and are above 0; the strategy stays that of the throttle. An identity with
        its own rates starts from zero, and again when they are lifted. Rates for all identities keep what was counted
        before. One round trip. Raises InvalidRate.
        """
        return self._set(storage.override(self.throttle, self._subject(identity, identity_hash), rates, seconds))

    async def aoverride(
        self, rates: object, seconds: float, identity: str | int | None = None, *, identity_hash: str = ""
    ) -> Rule:
        """See override()."""
        return await self._aset(storage.override(self.throttle, self._subject(identity, identity_hash), rates, seconds))

    def lift(self, identity: str | int | None = None, *, identity_hash: str = "") -> bool:
        """End the rule of an identity, or without one the override for all. Return whether there was one.

        Ends an automatic ban too, and resets the count that makes the next ban longer. One round trip.
        """
        subject = self._subject(identity, identity_hash)
        return bool(self.throttle.run_flow(storage.lift(self.throttle, subject)))

    async def alift(self, identity: str | int | None = None, *, identity_hash: str = "") -> bool:
        """See lift()."""
        subject = self._subject(identity, identity_hash)
        return bool(await self.throttle.arun_flow(storage.lift(self.throttle, subject)))

    def of(self, identity: str | int | None = None, *, identity_hash: str = "") -> Rule | None:
        """Return the rule of an identity, or without one the override for all. One round trip."""
        subject = self._subject(identity, identity_hash)
        return self.throttle.run_flow(storage.read(self.throttle, subject))

    async def aof(self, identity: str | int | None = None, *, identity_hash: str = "") -> Rule | None:
        """See of()."""
        subject = self._subject(identity, identity_hash)
        return await self.throttle.arun_flow(storage.read(self.throttle, subject))

    def list(self, limit: int = 100) -> RuleList:
        """Return the rules in force, with automatic bans: first the override for all, then those that end first.

        At most ``limit`` rules, 1 to 10,000. Two round trips.
        """
        rules: RuleList
        _count, rules = self.throttle.run_flow(_listed(self.throttle, limit))
        return rules

    async def alist(self, limit: int = 100) -> RuleList:
        """See list()."""
        rules: RuleList
        _count, rules = await self.throttle.arun_flow(_listed(self.throttle, limit))
        return rules

    def _set(self, steps: Flow[Rule]) -> Rule:
        return self.throttle.run_flow(steps)

    async def _aset(self, steps: Flow[Rule]) -> Rule:
        return await self.throttle.arun_flow(steps)

    def _subject(self, identity: str | int | None, identity_hash: str) -> Subject:
        return storage.subject(self.throttle, identity, identity_hash)

    def _single(self, identity: str | int | None, identity_hash: str) -> Subject:
        subject = self._subject(identity, identity_hash)
        if not subject.identity_hash:
            raise InvalidValue("Give the identity, or as identity_hash the hash that lists show.")
        return subject


def _listed(throttle: BaseThrottle, limit: int) -> Flow[tuple[int, RuleList]]:
    return storage.listed(throttle, whole_number("limit", limit, (1, LIMIT)))


def counts(throttles: Sequence[AnyThrottle]) -> dict[AnyThrottle, int]:
    """Return how many rules each throttle has. One round trip for each connection."""
    by_throttle: dict[AnyThrottle, int] = {}
    for using in dict.fromkeys(throttle.using for throttle in throttles):
        of_connection = [throttle for throttle in throttles if throttle.using == using]
        by_throttle |= flow.run(_counts(of_connection), connections.client(using))
    return by_throttle


def _counts(throttles: Sequence[AnyThrottle]) -> Flow[dict[AnyThrottle, int]]:
    replies = yield Batch([storage.index(throttle, 0) for throttle in throttles])
    return {throttle: count for throttle, (count, _) in zip(throttles, replies, strict=True)}
