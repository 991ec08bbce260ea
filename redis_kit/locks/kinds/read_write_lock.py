"""A lock for many readers or one writer."""

from inspect import signature
from typing import Any

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import with_own_init
from redis_kit.core.text import unexpected
from redis_kit.locks.acquiring.wait import Refusal
from redis_kit.locks.arguments import HINTS, LIMIT
from redis_kit.locks.errors import AlreadyHeld
from redis_kit.locks.kinds.fair_lock import BaseFairLock
from redis_kit.locks.leases.lease import Lease


class ReadWriteLock:
    """Many readers at a time, or one writer: ``with lock.read:`` and ``with lock.write:``, with the methods of Lock.

    Both wait in one queue, in the order in which they came: a reader that comes after a writer waits behind it, so
    no writer waits for ever. Leases last ``timeout`` seconds (0.1 s to 24 h) unless they are extended. The other
    options are those of Lock, except ``reentrant``. A caller that holds one side and waits for either gets AlreadyHeld.
    At most 1,000,000 readers at a time.
    """

    def __init__(self, name: str, **options: Any) -> None:
        if options.get("reentrant"):
            raise InvalidValue(
                "A ReadWriteLock can't be reentrant: a reader would wait for a writer that waits for it."
            )
        if unknown := [option for option in options if option not in signature(ReadLock).parameters]:
            raise unexpected("ReadWriteLock", ReadLock, unknown, HINTS)
        self.name, self.read, self.write = name, ReadLock(name, **options), WriteLock(name, **options)
        self.read.other, self.write.other = self.write, self.read

    def __repr__(self) -> str:
        return f"<ReadWriteLock {self.name!r}>"


@with_own_init
class ReadLock(BaseFairLock):
    """The readers' side of a ReadWriteLock."""

    kind = "rwlock"
    limit = LIMIT[1]
    other: "BaseFairLock | None" = None

    def acquire_flow(self, seconds: float) -> Flow[Lease | Refusal]:
        """See BaseLock."""
        own = self.other.owned_leases.latest() if self.other and seconds else None
        if own and own.held:
            text = f"This thread or task holds {self.other!r} and would wait for itself; release that one first."
            raise AlreadyHeld(text, self.name)
        return (yield from super().acquire_flow(seconds))


@with_own_init
class WriteLock(ReadLock):
    """The writers' side of a ReadWriteLock: it acquires all slots."""

    weight = LIMIT[1]
