"""Locks that are acquired in the order in which their callers came."""

from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.primitive import with_own_init
from redis_kit.core.steps import Call
from redis_kit.locks.acquiring.wait import Refusal
from redis_kit.locks.errors import LockNotAcquired
from redis_kit.locks.kinds.semaphore import SlotLock, SlotRefusal


class BaseFairLock(SlotLock):
    """Base of locks made of slots that are given out in the order of a queue on the server."""

    fair = True
    exclusive = True

    @operation(if_closed=True)
    def locked(self) -> Flow[bool]:
        """Tell whether anyone holds it. One round trip."""
        return bool((yield from self._used()))

    @operation(if_closed=False)
    def owned(self) -> Flow[bool]:
        """Tell whether this thread or task holds it, as the server sees it. One round trip."""
        lease = self.owned_leases.latest()
        return lease is not None and bool((yield Call("EXISTS", f"{self.keys().lease}:{lease.token}")))

    alocked = twin(locked)
    aowned = twin(owned)

    def _refusal_error(self, refusal: Refusal) -> LockNotAcquired:
        """See BaseLock."""
        full = SlotRefusal(*refusal)
        parts = []
        if full.holder:
            held_for, ends_in = full.held_for / 1000, full.ends_in / 1000
            parts.append(f"is held by {full.holder.text} for {held_for:.1f} s; that lease ends in {ends_in:.1f} s")
        if 1 < full.used < full.limit:
            parts.append(f"{full.used} hold it in all")
        if full.place:
            parts.append(f"{full.place} came before and wait for it too")
        holder = full.holder.process_text if full.holder else ""
        return LockNotAcquired(f"{self!r} {'; '.join(parts)}.", self.name, holder)


@with_own_init
class FairLock(BaseFairLock):
    """A lock that its waiters get in the order in which they came, in all processes.

    Everything else is as with Lock: one holder at a time, for ``timeout`` seconds (0.1 s to 24 h) unless it is
    extended. The order is that of a counter on the server (ticket lock; Mellor-Crummey and Scott, 1991). A waiter that
    dies, or stays silent for 3.5 s, loses its place; so a dead one costs at most 5 seconds.
    """

    kind = "fairlock"
