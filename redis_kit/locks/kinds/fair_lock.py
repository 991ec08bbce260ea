"""Locks that are taken in the order in which their callers came."""

from functools import cached_property

from redis_kit.core.scripts import ScriptCall
from redis_kit.locks.acquiring.wait import Attempt, Refusal
from redis_kit.locks.errors import LockNotAcquired
from redis_kit.locks.kinds import slots
from redis_kit.locks.kinds.base import Leasing


class FairLeasing(Leasing):
    """Base of locks made of slots that are given out in the order of a queue on the server."""

    parts = slots.PARTS
    fair = True
    exclusive = True
    limit = 1
    weight = 1

    def locked(self) -> bool:
        """Tell whether anyone holds it. One round trip."""
        return bool(self._run(slots.used(self), if_closed=1))

    async def alocked(self) -> bool:
        """See locked()."""
        return bool(await self._arun(slots.used(self), if_closed=1))

    def owned(self) -> bool:
        """Tell whether this thread or task holds it, as the server sees it. One round trip."""
        return self._run(slots.is_owned(self, self._taken.latest()), if_closed=False)

    async def aowned(self) -> bool:
        """See owned()."""
        return await self._arun(slots.is_owned(self, self._taken.latest()), if_closed=False)

    def _take(self, attempt: Attempt) -> ScriptCall:
        return slots.take_fair(self, attempt)

    def _give_back(self, token: str) -> ScriptCall:
        return slots.give_back_fair(self, token)

    def _prolong(self, token: str, more: int, how: int) -> ScriptCall:
        return slots.refresh(self._levels, token, more, how)

    def _refused(self, refusal: Refusal) -> LockNotAcquired:
        full = slots.Full(*refusal)
        parts = []
        if full.holder:
            held_for, left = full.held_for / 1000, full.left / 1000
            parts.append(f"is held by {full.holder.text} for {held_for:.1f} s; that lease ends in {left:.1f} s")
        if 1 < full.used < full.limit:
            parts.append(f"{full.used} hold it in all")
        if full.place:
            parts.append(f"{full.place} came before and wait for it too")
        return LockNotAcquired(f"{self!r} {'; '.join(parts)}.", self.name, full.holder.place if full.holder else "")

    @cached_property
    def _levels(self) -> slots.Levels:
        return slots.Levels((self,))


class FairLock(FairLeasing):
    """A lock that those who wait for it get in the order in which they came, whatever process they are in.

    All else is as with Lock: one holder at a time, for ``timeout`` seconds (0.1 s to 24 h) unless it is extended. The
    order is that of a counter on the server (ticket lock; Mellor-Crummey and Scott, 1991). A waiter that died, or that
    could not tell the server for 3.5 seconds that it waits, loses its place; so a dead one costs at most 5 seconds.
    """

    kind = "fairlock"
