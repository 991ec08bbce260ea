"""Several locks at once: all of them or none."""

import contextlib
from collections import Counter
from collections.abc import Sequence
from time import monotonic
from types import TracebackType
from typing import Any

from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.text import shortened
from redis_kit.locks.acquiring.reentrancy import still_needed
from redis_kit.locks.arguments import Seconds, blocking_time, flag, patience
from redis_kit.locks.errors import CannotRenew, LockNotAcquired, NotHeld
from redis_kit.locks.kinds.base import BEHIND_OTHERS, Leasing
from redis_kit.locks.kinds.lock import Lock
from redis_kit.locks.kinds.read_write_lock import ReadWriteLock
from redis_kit.locks.leases.group import Leases, raise_first
from redis_kit.locks.leases.lease import Lease, safe_deadline
from redis_kit.locks.renewal import pending_releases, renewer, scheduler

MOST = 1000


class MultiLock:
    """All of several locks, or none: names, for which ``options`` are those of Lock, or locks and semaphores.

    They are asked for in one order, whatever the order in which they are named, so that no two callers wait for each
    other. ``blocking_timeout`` (0 to 31,536,000 seconds; None waits for ever) is for all together. While it waits for
    one it keeps those before it, renewed, and none of those behind. 1 to 1,000, with one connection.
    """

    def __init__(
        self,
        *locks: Leasing | str,
        blocking: bool = True,
        blocking_timeout: Seconds | None = None,
        **options: Any,
    ) -> None:
        self.blocking, self.blocking_timeout = flag("blocking", blocking), blocking_time(blocking_timeout)
        self.locks = tuple(_lock(one, options) for one in locks)
        _check(self.locks, bool(options) and not any(isinstance(one, str) for one in locks))
        # Piece by piece, so that nothing comes between a semaphore and those within it, which take of both.
        self._in_order = sorted(self.locks, key=lambda lock: (lock.tag(), lock.member.split(":")))

    def __repr__(self) -> str:
        return f"<MultiLock of {', '.join(map(repr, self.locks))}>"

    def acquire(self, blocking: bool | None = None, *, blocking_timeout: Seconds | None = None) -> Leases | None:
        """Take all, waiting as long as told here or at creation; None when one stays taken, and then none is held.

        For ``blocking_timeout`` None is what was told at creation, as in redis-py. One round trip when all are free, on
        a Cluster one per node. Raises what the acquire() of each does.
        """
        found = self._asked(patience(self, blocking, blocking_timeout))
        return found if isinstance(found, Leases) else None

    async def aacquire(self, blocking: bool | None = None, *, blocking_timeout: Seconds | None = None) -> Leases | None:
        """See acquire()."""
        found = await self._aasked(patience(self, blocking, blocking_timeout))
        return found if isinstance(found, Leases) else None

    def release(self) -> None:
        """Give back what this thread or task took. Raises NotHeld or LockLost as each does. One round trip."""
        self._own().release()

    async def arelease(self) -> None:
        """See release()."""
        await self._own().arelease()

    def __enter__(self) -> Leases:
        return self._entered(self._asked(patience(self)))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._own().__exit__(kind, error, at)

    async def __aenter__(self) -> Leases:
        return await self._entered(await self._aasked(patience(self))).__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._own().__aexit__(kind, error, at)

    def _asked(self, wait: float) -> Leases | LockNotAcquired | None:
        began = monotonic()
        try:
            return self.locks[0]._run(pending_releases.first(self.locks, self._acquire(wait)), if_closed=None)
        except BaseException:
            self._abandon_since(began)
            raise

    async def _aasked(self, wait: float) -> Leases | LockNotAcquired | None:
        began = monotonic()
        try:
            return await self.locks[0]._arun(pending_releases.first(self.locks, self._acquire(wait)), if_closed=None)
        except BaseException:
            self._abandon_since(began)
            raise

    def _acquire(self, patience: float) -> Flow[Leases | LockNotAcquired]:
        taking = _Taking(self._in_order, monotonic() + patience)
        try:
            refused = yield from taking.all()
        except Exception:
            yield from taking.undo()
            raise
        except BaseException:
            taking.abandon()
            raise
        if refused:
            yield from taking.undo()
            return refused
        return Leases([taking.leases[lock] for lock in self.locks])

    def _abandon_since(self, began: float) -> None:
        # It struck between the server's answer and the caller.
        for lock in self.locks:
            lock._abandon_since(began)

    def _own(self) -> Leases:
        found = [lease for lock in self.locks if (lease := lock._taken.latest())]
        return Leases(found or [lock._own() for lock in self.locks])

    def _entered(self, found: Leases | LockNotAcquired | None) -> Leases:
        if found is None:
            self.locks[0]._entered(None)
        if isinstance(found, Leases):
            return found
        raise found or LockNotAcquired(f"{self!r} was not acquired.")


class _Taking:
    """One try to take locks in a fixed order: the leases that it has so far."""

    def __init__(self, locks: Sequence[Leasing], give_up: float) -> None:
        self.locks, self.give_up = locks, give_up
        self.leases: dict[Leasing, Lease] = {}

    def all(self) -> Flow[LockNotAcquired | None]:
        """Take all; return why not, with some of them taken."""
        while len(self.leases) < len(self.locks):
            refused = yield from self._at_once()
            if refused and monotonic() < self.give_up:
                refused = yield from self._wait_for(self.locks[len(self.leases)])
            if refused:
                return refused
        return None

    def undo(self, keep: int = 0) -> Flow[None]:
        """Give back what was taken, but for the first ``keep`` locks; without the server, as soon as it answers."""
        yield from gather([lease.source._let_go(lease) for lease in self._own(keep)], return_exceptions=True)

    def abandon(self) -> None:
        """Leave it to the background to give back what was taken."""
        for lease in self._own():
            lease.source._abandon(lease)

    def _own(self, keep: int = 0) -> list[Lease]:
        # All but those that the caller had before.
        ending = [lease for lock in self.locks[keep:] if (lease := self.leases.pop(lock, None))]
        return [lease for lease in ending if not (lease.depth and still_needed(lease.source, lease))]

    def _at_once(self) -> Flow[LockNotAcquired | None]:
        # What comes after one that is refused is given back: to hold it during the wait could close a circle of waits.
        begun = len(self.leases)
        found = yield from gather([self._take(lock, 0) for lock in self.locks[begun:]], return_exceptions=True)
        raise_first(found)
        free = next((place for place, one in enumerate(found) if not isinstance(one, Lease)), len(found))
        yield from self.undo(begun + free)
        return None if free == len(found) else _refused(self.locks[begun + free], found[free])

    def _take(self, lock: Leasing, patience: float) -> Flow[Any]:
        found = yield from lock._acquire(patience)
        if isinstance(found, Lease):
            self.leases[lock] = found
        return found

    def _wait_for(self, lock: Leasing) -> Flow[LockNotAcquired | None]:
        ours = [lease for lease in self.leases.values() if not (lease.depth or lease.source.renew)]
        keeping = _Keeping(ours)
        try:
            with contextlib.suppress(CannotRenew):  # they last for their time all the same
                keeping.start()
            found = yield from self._take(lock, max(self.give_up - monotonic(), 0))
        finally:
            scheduler.remove(keeping)
        if not isinstance(found, Lease):
            return _refused(lock, found)
        # Each starts anew with its full length.
        results = yield from gather(
            [lease.source._extend(lease, lease.source.lasting, True) for lease in ours], return_exceptions=True
        )
        raise_first([one for one in results if not isinstance(one, NotHeld)])
        if not all(lease.held for lease in self.leases.values()):
            yield from self.undo()
        return None


class _Keeping:
    """Lets leases last while another one is waited for."""

    def __init__(self, leases: Sequence[Lease]) -> None:
        self.leases = leases
        self.pause = min((lease.source.lasting for lease in leases), default=0) * renewer.SHARE

    def start(self) -> None:
        if self.leases:
            scheduler.add(self, after=self.pause, lane=self.leases[0].source.using)

    def beat(self) -> float:
        """Renew them. One round trip."""
        asked, before = monotonic(), [lease.deadline for lease in self.leases]
        flows = [_renewed(lease) for lease in self.leases]
        results = self.leases[0].source._run(gather(flows, return_exceptions=True))
        for lease, deadline, lasting in zip(self.leases, before, results, strict=True):
            # One that was lost is noticed after the wait.
            if isinstance(lasting, int) and lasting and lease.deadline == deadline:
                lease.deadline = safe_deadline(asked, lasting / 1000)
                renewer.changed(lease)
        return self.pause


def _renewed(lease: Lease) -> Flow[Any]:
    return (yield lease.source._prolong(lease.token, round(lease.source.lasting * 1000), renewer.AT_LEAST))


def _lock(one: Any, options: dict[str, Any]) -> Leasing:
    if isinstance(one, Leasing):
        return one
    if isinstance(one, ReadWriteLock):
        raise InvalidValue(f"A MultiLock takes one side of {one!r}: its .read or its .write.")
    if not isinstance(one, str):
        raise InvalidName(f"A MultiLock takes names, locks and semaphores, not {shortened(one)}.")
    return Lock(one, **options)


def _check(locks: Sequence[Leasing], options_for_nothing: bool) -> None:
    if not 1 <= len(locks) <= MOST:
        raise InvalidValue(f"A MultiLock takes 1 to {MOST:,} locks, not {len(locks)}.")
    if options_for_nothing:
        raise InvalidValue("The options of a MultiLock are for names; locks and semaphores bring their own.")
    if len({lock.using for lock in locks}) > 1:
        raise InvalidValue("All locks of a MultiLock must use the same connection.")
    every = Counter((level.tag(), level.member) for lock in locks for level in getattr(lock, "levels", (lock,)))
    if twice := [member for (_, member), count in every.items() if count > 1]:
        raise InvalidValue(f"{twice[0]} is among the locks of a MultiLock twice, and would wait for itself.")


def _refused(lock: Leasing, refusal: Any) -> LockNotAcquired:
    return lock._refused(refusal) if refusal else LockNotAcquired(f"{lock!r} {BEHIND_OTHERS}", lock.name)
