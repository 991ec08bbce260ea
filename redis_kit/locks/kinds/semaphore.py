"""A semaphore: at most so many holders at a time, in every process, for a limited time."""

from collections import deque
from collections.abc import Callable
from typing import Any

from redis_kit.core import flow
from redis_kit.core.errors import InvalidValue
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.text import shortened
from redis_kit.locks.acquiring.wait import Attempt, Refusal
from redis_kit.locks.arguments import LIMIT, Seconds, flag, whole
from redis_kit.locks.errors import LockNotAcquired
from redis_kit.locks.kinds import slots
from redis_kit.locks.kinds.base import Leasing, Release
from redis_kit.locks.leases.lease import Lease


class Semaphore(Leasing):
    """At most ``limit`` slots in use (1 to 1,000,000), each for ``timeout`` seconds (0.1 s to 24 h) unless extended.

    A lease takes ``weight`` slots (1 to the limit); a thread or task may have several leases. The slots of a dead
    holder come back at the end of its lease. Where processes give different limits for one name, the smallest one in
    use counts; one that was set by ``set_limit()`` counts instead of all. ``within`` is a semaphore of which as many
    slots are taken at the same time: of both or of none. With ``fair`` those who wait are served in the order in which
    they came, by a number of the server; all users of a name must agree on that. Leases are kept in a sorted set on
    the server's clock ("Redis in Action", 6.3, without its dependence on clients' clocks).
    """

    kind = "semaphore"
    parts = slots.PARTS
    levels: tuple["Semaphore", ...]

    def __init__(
        self,
        name: str,
        limit: int,
        *,
        timeout: Seconds | None = None,
        fair: bool = False,
        weight: int = 1,
        within: "Semaphore | None" = None,
        blocking: bool = True,
        blocking_timeout: Seconds | None = None,
        renew: bool = False,
        max_hold: Seconds | None = None,
        on_lost: Callable[[Lease], Any] | None = None,
        release: Release = "on_exit",
        database: str = "default",
        using: str = "default",
    ) -> None:
        super().__init__(
            name,
            timeout=timeout,
            blocking=blocking,
            blocking_timeout=blocking_timeout,
            renew=renew,
            max_hold=max_hold,
            on_lost=on_lost,
            release=release,
            database=database,
            using=using,
        )
        self.limit = whole("limit", limit, LIMIT)
        self.fair = flag("fair", fair)
        self.within = within
        self.levels = (self,) if within is None else (*self._checked_outer(within).levels, self)
        self.weight = whole("weight", weight, (1, min(level.limit for level in self.levels)))
        self._levels = slots.Levels(self.levels)
        self._tickets: deque[str] = deque(maxlen=100)  # of those who waited through this object lately

    def __repr__(self) -> str:
        return super().__repr__() if self.within is None else f"{super().__repr__()[:-1]} within {self.within.name!r}>"

    def used(self) -> int:
        """Return how many slots are in use. One round trip."""
        return self._run(slots.used(self))

    async def aused(self) -> int:
        """See used()."""
        return await self._arun(slots.used(self))

    def set_limit(self, number: int | None) -> None:
        """Let a limit (1 to 1,000,000) count instead of those that the code of all processes states; None ends that.

        It counts at once and until it is changed: a higher one wakes those who wait, a lower one takes nothing from
        anybody, but nobody gets in until there is room below it. It is kept although nobody holds a slot. One round
        trip.
        """
        self._run(flow.one(self._set_limit(number)))

    async def aset_limit(self, number: int | None) -> None:
        """See set_limit()."""
        await self._arun(flow.one(self._set_limit(number)))

    def position(self) -> int | None:
        """Return the place in the queue of the first one who waits through this object: 1 comes next.

        Who died counts for 4 seconds. None where nobody waits, and where the semaphore is not fair. At most the last
        100 callers are looked for. One round trip.
        """
        return self._run(slots.place(self, tuple(self._tickets)))

    async def aposition(self) -> int | None:
        """See position()."""
        return await self._arun(slots.place(self, tuple(self._tickets)))

    @property
    def place(self) -> str:
        """Return what stands for it in this process. Who takes fewer slots need not stand in line behind others."""
        return super().place if self.fair or self.weight == 1 else f"{super().place} {self.weight}"

    def _take(self, attempt: Attempt) -> ScriptCall:
        if not self.fair:
            return slots.take(self._levels, attempt, self.weight)
        if attempt.waiting and attempt.token not in self._tickets:
            self._tickets.append(attempt.token)
        return slots.take_fair(self, attempt)

    def _give_back(self, token: str) -> ScriptCall:
        return slots.give_back_fair(self, token) if self.fair else slots.give_back(self._levels, token)

    def _prolong(self, token: str, more: int, how: int) -> ScriptCall:
        return slots.refresh(self._levels, token, more, how)

    def _set_limit(self, number: int | None) -> ScriptCall:
        if number is not None:
            whole("number", number, LIMIT)
        return slots.set_fair_limit(self, number) if self.fair else slots.set_limit(self, number)

    def _signal(self, refusal: Refusal, attempt: Attempt) -> str:
        full = slots.Full(*refusal)
        if self.weight > full.limit:  # that an operator or another process set: it would wait for ever
            raise self._refused(refusal)
        return attempt.wake if self.fair else self._levels.keys().signals[full.place - 1]

    def _refused(self, refusal: Refusal) -> LockNotAcquired:
        full = slots.Full(*refusal)
        level = self if self.fair else self.levels[full.place - 1]
        text = f"{level!r} has {full.used} of {full.limit} slots in use"
        if self.weight > full.limit:
            text += f" and {self!r} takes {self.weight} at once, so that it can never get them"
        elif full.holder:
            text += f"; the first ends in {full.left / 1000:.1f} s at the latest, held by {full.holder.text}"
        if self.fair and full.place:
            text += f"; {full.place} came before and wait for it too"
        if full.limit < level.limit:
            text += f". Its limit is {level.limit} here and {full.limit} elsewhere; the smaller one counts"
        return LockNotAcquired(f"{text}.", self.name, full.holder.place if full.holder else "")

    def _checked_outer(self, within: Any) -> "Semaphore":
        if not isinstance(within, Semaphore):
            raise InvalidValue(f"within must be a Semaphore, not {shortened(within)}.")
        if self.fair or within.fair:
            raise InvalidValue(
                "fair=True goes only without within: who is first in one queue may not be in the other, "
                "and both would wait for each other."
            )
        if within.weight != 1 or within.using != self.using:
            raise InvalidValue(
                f"{within!r} must have the weight 1 and the connection {self.using!r} to be around another."
            )
        # One script takes from all levels, so their keys have the tag of the outermost.
        self.member, self._tag = f"{within.member}:{self.encoded}", within.tag()
        return within
