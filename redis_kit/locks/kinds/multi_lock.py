"""Several locks at once: all of them or none."""

import contextlib
from collections import Counter
from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import Any, Unpack

from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.core.flow import Flow, single
from redis_kit.core.gather import gather
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.text import shortened, unexpected
from redis_kit.locks.acquiring import wait
from redis_kit.locks.acquiring.reentrancy import is_still_needed
from redis_kit.locks.arguments import HINTS, LockOptions, Seconds
from redis_kit.locks.errors import CannotRenew, LockNotAcquired, NotHeld
from redis_kit.locks.kinds.base import BaseLock, BlockContext
from redis_kit.locks.kinds.lock import Lock
from redis_kit.locks.kinds.read_write_lock import ReadWriteLock
from redis_kit.locks.leases.lease import ExtendMode, Lease, LeaseContext, OwnedLeases, extension, safe_deadline
from redis_kit.locks.renewal import renewer, scheduler

MAX_LOCKS = 1000


class LeaseGroup(LeaseContext):
    """Proof of holding several locks: ``leases`` has one of each, in the order in which they were named.

    ``group["name"]`` is the first with that name. Each has its own fence, since it guards something else. There is no
    common fence. If several fail, the first error is raised once all were released or extended.
    """

    def __init__(self, leases: Sequence[Lease]) -> None:
        self.leases = tuple(leases)

    def __repr__(self) -> str:
        return f"<LeaseGroup of {', '.join(repr(lease.source) for lease in self.leases)}>"

    def __getitem__(self, name: str) -> Lease:
        for lease in self.leases:
            if lease.name == name:
                return lease
        raise KeyError(name)

    @property
    def held(self) -> bool:
        """Tell whether all are surely live, without asking the server. See Lease.held."""
        return all(lease.held for lease in self.leases)

    @property
    def lost(self) -> bool:
        """Tell whether one is known to have ended before it was released."""
        return any(lease.lost for lease in self.leases)

    @property
    def over(self) -> bool:
        """Tell whether nothing is left to release. See Lease.over."""
        return all(lease.over for lease in self.leases)

    def _all(self) -> Sequence[Lease]:
        return self.leases

    def _release(self) -> Flow[None]:
        # Leases that were released one by one are not an error, unless all were.
        remaining = [lease for lease in self.leases if lease.lost or not lease.over] or self.leases
        flows = [lease.source.release_flow(lease) for lease in remaining]
        _raise_first((yield from gather(flows, return_exceptions=True)))

    def _extend(self, additional_time: Seconds | None, replace_ttl: bool) -> Flow[bool]:
        changes = [extension(lease, additional_time, replace_ttl) for lease in self.leases]
        flows = [lease.source.extend_flow(lease, *change) for lease, change in zip(self.leases, changes, strict=True)]
        _raise_first((yield from gather(flows, return_exceptions=True)))
        return True


def _raise_first(results: Sequence[object]) -> None:
    """Raise one error among some results, with the others as its notes. An error that is not NotHeld comes first."""
    errors = [result for result in results if isinstance(result, Exception)]
    if not errors:
        return
    worst, *others = sorted(errors, key=lambda error: isinstance(error, NotHeld))
    for error in others:
        if error is not worst:
            worst.add_note(str(error))
    raise worst


class MultiLock(BlockContext[LeaseGroup]):
    """All of several locks, or none: names, for which ``options`` are those of Lock, or locks and semaphores.

    They are acquired in one order, in whatever order they are named, so that no two callers wait for each other.
    ``blocking_timeout`` (0 to 31,536,000 seconds; None waits for ever) is for all together. While it waits for one
    lock it holds and renews those before it, and holds none of those after it. 1 to 1,000, with one connection.
    acquire() takes one round trip if all are free, on a Cluster one per node, and holds none if it returns None.
    """

    lease_type = LeaseGroup

    def __init__(
        self,
        *locks: BaseLock | str,
        blocking: bool = True,
        blocking_timeout: Seconds | None = None,
        **options: Unpack[LockOptions],
    ) -> None:
        super().__init__(blocking, blocking_timeout)
        if unknown := [option for option in options if option not in LockOptions.__annotations__]:
            raise unexpected("MultiLock", MultiLock, unknown, HINTS)
        self.locks = tuple(_lock(given, options) for given in locks)
        _check(self.locks, bool(options) and not any(isinstance(given, str) for given in locks))
        self._owned_groups: OwnedLeases[LeaseGroup] = OwnedLeases()
        # Part by part, so that nothing comes between a semaphore and those within it, which acquire slots of both.
        self._in_order = sorted(self.locks, key=lambda lock: (lock.tag(), lock.member.split(":")))

    def __repr__(self) -> str:
        return f"<MultiLock of {', '.join(map(repr, self.locks))}>"

    def release(self) -> None:
        """Release what this thread or task acquired last. Raises NotHeld or LockLost as each does. One round trip."""
        self._own().release()

    async def arelease(self) -> None:
        """See release()."""
        await self._own().arelease()

    def sources(self) -> Sequence[BaseLock]:
        """See BlockContext."""
        return self.locks

    def acquire_flow(self, seconds: float) -> Flow[LeaseGroup | LockNotAcquired]:
        """See BlockContext."""
        acquisition = _Acquisition(self._in_order, monotonic() + seconds)
        try:
            error = yield from acquisition.acquire_all()
        except Exception:
            yield from acquisition.undo()
            raise
        except BaseException:
            acquisition.abandon()
            raise
        if error:
            yield from acquisition.undo()
            return error
        group = LeaseGroup([acquisition.leases[lock] for lock in self.locks])
        self._owned_groups.add(group)
        return group

    def _own(self) -> LeaseGroup:
        if group := self._owned_groups.latest():
            return group
        raise NotHeld(
            f"This thread or task holds no leases of {self!r}. Elsewhere, release the group that acquire() returned."
        )

    def lease_or_raise(self, result: LeaseGroup | LockNotAcquired | None) -> LeaseGroup:
        """See BlockContext."""
        if result is None:
            self.locks[0].lease_or_raise(None)
        if isinstance(result, LeaseGroup):
            return result
        raise result or LockNotAcquired(f"{self!r} was not acquired.")


class _Acquisition:
    """One attempt to acquire locks in a fixed order: the leases that it has so far."""

    def __init__(self, locks: Sequence[BaseLock], deadline: float) -> None:
        self.locks, self.deadline = locks, deadline
        self.leases: dict[BaseLock, Lease] = {}

    def acquire_all(self) -> Flow[LockNotAcquired | None]:
        """Acquire all; return the error if one is refused, with some of the others acquired.

        Once it has waited it goes on after a failure that may pass, from the beginning.
        """
        has_waited, failures = False, 0
        while len(self.leases) < len(self.locks):
            try:
                error = yield from self._acquire_free()
                if error and monotonic() < self.deadline:
                    has_waited = True
                    error = yield from self._wait_for(self.locks[len(self.leases)])
            except wait.PASSING:
                if not has_waited or monotonic() >= self.deadline:
                    raise
                yield from self.undo()
                yield wait.pause(self.deadline, failures)
                failures += 1
                continue
            failures = 0
            if error:
                return error
        return None

    def undo(self, keep: int = 0) -> Flow[None]:
        """Release what was acquired, except the first ``keep`` locks; if need be, in the background."""
        yield from gather([lease.source.end_flow(lease) for lease in self._removed(keep)], return_exceptions=True)

    def abandon(self) -> None:
        """Let the background release what was acquired."""
        for lease in self._removed():
            lease.source.abandon(lease)

    def _removed(self, keep: int = 0) -> list[Lease]:
        # All but those that the caller held before.
        removed = [(lock, lease) for lock in self.locks[keep:] if (lease := self.leases.pop(lock, None))]
        return [lease for lock, lease in removed if not (lease.reentries and is_still_needed(lock, lease))]

    def _acquire_free(self) -> Flow[LockNotAcquired | None]:
        # The locks after a refused one are released: to hold them during the wait could close a circle of waits.
        first = len(self.leases)
        results = yield from gather([self._acquire(lock, 0) for lock in self.locks[first:]], return_exceptions=True)
        _raise_first(results)
        free = next((place for place, result in enumerate(results) if not isinstance(result, Lease)), len(results))
        yield from self.undo(first + free)
        return None if free == len(results) else self.locks[first + free].refusal_error(results[free])

    def _acquire(self, lock: BaseLock, seconds: float) -> Flow[Any]:
        result = yield from lock.acquire_flow(seconds)
        if isinstance(result, Lease):
            self.leases[lock] = result
        return result

    def _wait_for(self, lock: BaseLock) -> Flow[LockNotAcquired | None]:
        waiting = [lease for lease in self.leases.values() if not (lease.reentries or lease.source.renew)]
        renewal = partial(_renew, waiting)
        try:
            with contextlib.suppress(CannotRenew):  # without renewal they last for their timeout
                if waiting:
                    scheduler.add(renewal, after=_pause(waiting), lane=lock.using)
            result = yield from self._acquire(lock, max(self.deadline - monotonic(), 0))
        finally:
            scheduler.remove(renewal)
        if not isinstance(result, Lease):
            return lock.refusal_error(result)
        # Each starts again with its full timeout.
        flows = [lease.source.extend_flow(lease, lease.source.lease_timeout, True) for lease in waiting]
        results = yield from gather(flows, return_exceptions=True)
        _raise_first([result for result in results if not isinstance(result, NotHeld)])
        if not all(lease.held for lease in self.leases.values()):
            yield from self.undo()
        return None


def _renew(leases: Sequence[Lease]) -> float:
    """Renew leases while the caller waits for another one. One round trip."""
    sent_at, before = monotonic(), [lease.deadline for lease in leases]
    flows = [single(_renewal_step(lease)) for lease in leases]
    results = leases[0].source.run_flow(gather(flows, return_exceptions=True))
    for lease, deadline, ttl_ms in zip(leases, before, results, strict=True):
        # A lost lease is noticed after the wait.
        if isinstance(ttl_ms, int) and ttl_ms and lease.deadline == deadline:
            lease.deadline = safe_deadline(sent_at, ttl_ms / 1000)
            renewer.reschedule(lease)
    return _pause(leases)


def _renewal_step(lease: Lease) -> ScriptCall:
    return lease.source.extend_step(lease.token, round(lease.source.lease_timeout * 1000), ExtendMode.AT_LEAST)


def _pause(leases: Sequence[Lease]) -> float:
    return min(lease.source.lease_timeout for lease in leases) * renewer.SHARE


def _lock(given: Any, options: LockOptions) -> BaseLock:
    if isinstance(given, BaseLock):
        return given
    if isinstance(given, ReadWriteLock):
        raise InvalidValue(f"A MultiLock takes one side of {given!r}: its .read or its .write.")
    if not isinstance(given, str):
        raise InvalidName(f"A MultiLock takes names, locks and semaphores, not {shortened(given)}.")
    return Lock(given, **options)


def _check(locks: Sequence[BaseLock], options_for_nothing: bool) -> None:
    if not 1 <= len(locks) <= MAX_LOCKS:
        raise InvalidValue(f"A MultiLock takes 1 to {MAX_LOCKS:,} locks, not {len(locks)}.")
    if options_for_nothing:
        raise InvalidValue("The options of a MultiLock are for names; locks and semaphores bring their own.")
    if len({lock.using for lock in locks}) > 1:
        raise InvalidValue("All locks of a MultiLock must use the same connection.")
    every = Counter((level.tag(), level.member) for lock in locks for level in getattr(lock, "levels", (lock,)))
    if twice := [member for (_, member), count in every.items() if count > 1]:
        raise InvalidValue(f"{twice[0]} is among the locks of a MultiLock twice, and would wait for itself.")
