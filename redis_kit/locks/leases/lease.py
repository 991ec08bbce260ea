"""A lease: proof of holding a lock, or a slot of a semaphore; and who owns which: each thread or task finds its own."""

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from enum import StrEnum
from time import monotonic
from types import TracebackType
from typing import Any, Generic, NamedTuple, NoReturn, Protocol, Self, TypeVar
from weakref import WeakValueDictionary, ref

from redis_kit.core.errors import RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.locks.arguments import TIMEOUT, Seconds, seconds
from redis_kit.locks.errors import LockLost, NotHeld, with_notes

logger = logging.getLogger("redis_kit.locks")

DRIFT = 0.01  # how much faster the server's clock may run than ours
MARGIN = 0.005  # seconds


class ExtendMode(StrEnum):
    """How a lease is extended. The values are those that the scripts take."""

    ADD = "0"  # by a time
    REPLACE = "1"  # so that a time is left from now on
    AT_LEAST = "2"  # so that at least a time is left from now on


class LeaseSource(Protocol):
    """A lock or semaphore, as the layers below know it. See BaseLock. Times are in seconds."""

    name: str
    using: str
    member: str
    renew: bool
    max_hold: float | None
    on_lost: Callable[[Any], Any] | None
    on_commit: bool
    database: str
    reentrant: bool
    exclusive: bool
    fair: bool
    owned_leases: Any

    @property
    def local_key(self) -> str: ...

    @property
    def lease_timeout(self) -> float: ...

    def tag(self) -> str: ...

    def key(self, part: str) -> str: ...

    def wake_up_list(self, refusal: Any, attempt: Any) -> str: ...

    def acquire_step(self, attempt: Any) -> ScriptCall: ...

    def release_step(self, token: str, *, unsure: bool = False) -> ScriptCall: ...

    def extend_step(self, token: str, ttl_ms: int, mode: ExtendMode) -> ScriptCall: ...

    def release_flow(self, lease: "Lease | None") -> Flow[None]: ...

    def extend_flow(self, lease: "Lease", additional_time: float, replace_ttl: bool) -> Flow[bool]: ...

    def end_flow(self, lease: "Lease") -> Flow[None]: ...

    def abandon(self, lease: "Lease") -> None: ...

    def run_flow(self, steps: Flow[Any], **answers: Any) -> Any: ...

    async def arun_flow(self, steps: Flow[Any], **answers: Any) -> Any: ...


class LeaseContext:
    """A lease, or several that were acquired together. Their ``with`` block ends with their release."""

    def release(self) -> None:
        """Release what is held. Raises LockLost if it ended before, NotHeld if it was released before. One round trip.

        After any other error it has ended for its holder too, and is released as soon as the server answers.
        """
        self._all()[0].source.run_flow(self._release())

    async def arelease(self) -> None:
        """See release()."""
        await self._all()[0].source.arun_flow(self._release())

    def extend(self, additional_time: Seconds | None = None, *, replace_ttl: bool = False) -> bool:
        """Extend what is held by some seconds, or let it end that many seconds from now with ``replace_ttl``.

        Without an argument it starts again with its full timeout. 0.1 s to 24 h per call, and never more than 24 h in
        all. Raises LockLost if it has ended: it is never acquired again. One round trip.
        """
        return bool(self._all()[0].source.run_flow(self._extend(additional_time, replace_ttl)))

    async def aextend(self, additional_time: Seconds | None = None, *, replace_ttl: bool = False) -> bool:
        """See extend()."""
        return bool(await self._all()[0].source.arun_flow(self._extend(additional_time, replace_ttl)))

    def _all(self) -> Sequence["Lease"]:
        raise NotImplementedError

    def _release(self) -> Flow[None]:
        raise NotImplementedError

    def _extend(self, additional_time: Seconds | None, replace_ttl: bool) -> Flow[bool]:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self.release()
        except RedisKitError as failure:
            self._failed(failure, error)

    async def __aenter__(self) -> Self:
        for lease in self._all():
            if watch := lease.watch:
                watch.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        cancellations = [lease._left(error) for lease in self._all()]  # each has to know
        try:
            await self.arelease()
        except RedisKitError as failure:
            if any(cancellations):
                raise failure from error
            self._failed(failure, error)

    def _failed(self, failure: RedisKitError, error: BaseException | None) -> None:
        # An error inside the block matters more than a failed release.
        if error is None:
            raise failure
        logger.warning("%r could not be released: %s", self, with_notes(failure))


class Lease(LeaseContext):
    """Proof of holding a lock or a slot, for a limited time. It may be passed to other threads and tasks.

    ``token`` identifies this lease on the server and should stay secret. ``fence`` is a number that grows with every
    lease of a name, so that a database can refuse a holder that comes too late. ``deadline`` is the moment of
    ``time.monotonic()`` until which the lease is surely live.
    """

    def __init__(self, source: LeaseSource, *, token: str, fence: int, deadline: float) -> None:
        self.source, self.token, self.fence = source, token, fence
        self.deadline, self.acquired_at = deadline, monotonic()
        # What follows is for the kit alone.
        self.timeout = source.lease_timeout  # seconds for which it starts again: the longest that a block of it stated
        self.pid = os.getpid()
        self.ending: type[NotHeld] | None = None
        self.extended_until = 0.0  # the latest end that an extension may have set
        self.late_until = 0.0  # until when a lost request for the lease may still reach the server
        self.reentries = 0  # how often its owner acquired it again
        self.until_commit = False  # released, and held until the end of a transaction
        self.watch: Any = None  # the Watch of a lease that is renewed or watched

    def __repr__(self) -> str:
        return f"<Lease of {self.source!r}, fence {self.fence}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A lease can't leave its process; pass its name and fence instead.")

    @property
    def name(self) -> str:
        """Return the name of the lock or semaphore."""
        return self.source.name

    @property
    def held(self) -> bool:
        """Tell whether the lease is surely live, without asking the server.

        It turns False before the server lets anyone else in: the time counts from the moment at which the request was
        sent, less 1 % and 5 ms for clocks that drift. Always False in a forked child.
        """
        return self.ending is None and monotonic() < self.deadline and os.getpid() == self.pid

    @property
    def lost(self) -> bool:
        """Tell whether it is known to have ended before it was released."""
        return self.ending is LockLost or (self.ending is None and monotonic() >= self.deadline)

    @property
    def over(self) -> bool:
        """Tell whether nothing is left to release: it was released or lost, or belongs to another process."""
        is_released = self.until_commit and not self.reentries
        return self.ending is not None or is_released or os.getpid() != self.pid

    @property
    def ends_by(self) -> float:
        """Return the moment of ``time.monotonic()`` at which it has surely ended, whether replies were lost or not."""
        return max(self.extended_until, latest_end(self.acquired_at, self.timeout))

    def _all(self) -> Sequence["Lease"]:
        return (self,)

    def _release(self) -> Flow[None]:
        return self.source.release_flow(self)

    def _extend(self, additional_time: Seconds | None, replace_ttl: bool) -> Flow[bool]:
        return self.source.extend_flow(self, *extension(self, additional_time, replace_ttl))

    def _left(self, error: BaseException | None) -> bool:
        """Note that the task leaves a block; True if ``error`` means nothing but the loss of the lease."""
        if not self.watch or (self.reentries and not self.lost):
            return False
        return bool(self.watch.leave(error))


def check_live(lease: Lease) -> None:
    """Raise NotHeld or LockLost if this process knows that a lease has ended."""
    if os.getpid() != lease.pid:
        raise NotHeld(f"{lease!r} belongs to the process {lease.pid}; a forked child must acquire its own.", lease.name)
    if lease.ending is not None:
        how = "ended" if lease.ending is LockLost else "was released"
        raise lease.ending(f"{lease!r} {how} before.", lease.name)


def mark_ended(lease: Lease, *, lost: bool = False) -> None:
    """Note that a lease has ended. The server is not told."""
    lease.deadline, lease.ending = float("-inf"), LockLost if lost else NotHeld


def note_extension(lease: Lease, since: float, timeout: float) -> None:
    """Note that the server is asked to extend a lease; the reply may get lost."""
    lease.extended_until = max(lease.extended_until, latest_end(since, min(timeout, TIMEOUT[1])))


def extension(lease: Lease, additional_time: Seconds | None = None, replace_ttl: bool = True) -> tuple[float, bool]:
    """Return the arguments of extend() in seconds, and whether they replace the TTL. Raises InvalidValue."""
    if additional_time is None:
        return lease.timeout, True
    return seconds("additional_time", additional_time, TIMEOUT), replace_ttl


def safe_deadline(sent_at: float, timeout: float) -> float:
    """Return until when a lease is surely live, if its request was sent at this moment of our clock."""
    return sent_at + timeout * (1 - DRIFT) - MARGIN


def latest_end(sent_before: float, timeout: float) -> float:
    """Return until when the server may hold a lease, if its request was sent before this moment of our clock."""
    return sent_before + timeout * (1 + DRIFT) + MARGIN


LeaseT = TypeVar("LeaseT", bound=LeaseContext)


class _Entry(NamedTuple):
    lease: Any
    owner: "ref[Any]"


class OwnedLeases(Generic[LeaseT]):
    """The leases that were acquired through one lock object and not released."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def add(self, lease: LeaseT) -> None:
        """Remember a lease of the current thread or task."""
        owner = current_owner()
        if self._entries:
            self._remove_ended(owner)
        self._entries.append(_Entry(lease, ref(owner)))

    def latest(self) -> LeaseT | None:
        """Return the last lease that the current thread or task acquired and did not release, even if it is lost."""
        if not self._entries:
            return None
        owner = current_owner()
        for entry in self._entries[::-1]:
            if entry.owner() is owner and (entry.lease.lost or not entry.lease.over):
                lease: LeaseT = entry.lease
                return lease
        return None

    def remove(self, lease: LeaseT) -> None:
        """Forget a lease."""
        for entry in self._entries[:]:
            if entry.lease is lease:
                self._remove(entry)

    def _remove_ended(self, owner: Any) -> None:
        for entry in self._entries[:]:
            lease, owned_by = entry.lease, entry.owner()
            if lease.over or (not lease.held and (owned_by is owner or owned_by is None)):
                self._remove(entry)

    def _remove(self, entry: _Entry) -> None:
        with contextlib.suppress(ValueError):  # another thread has removed it
            self._entries.remove(entry)


_by_name: WeakValueDictionary[Hashable, OwnedLeases[Lease]] = WeakValueDictionary()


def owned_by_name(name: Hashable) -> OwnedLeases[Lease]:
    """Return the leases that were acquired through any of this process's objects with a name."""
    return _by_name.setdefault(name, OwnedLeases())


def forget() -> None:
    """Let no lock object that is made from now on know of leases acquired through others. Only for tests."""
    _by_name.clear()


def current_owner() -> Any:
    """Return the running asyncio task, else the current thread. A task inherits nothing from the one that made it."""
    loop = asyncio._get_running_loop()
    return (asyncio.current_task(loop) if loop else None) or threading.current_thread()


os.register_at_fork(after_in_child=_by_name.clear)
