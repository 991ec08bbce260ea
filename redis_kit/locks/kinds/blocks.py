"""How a lock object is acquired: by methods, and by ``with`` blocks, which end their lease wherever they are left."""

import math
import sys
from collections.abc import Coroutine, Mapping, Sequence
from time import monotonic
from types import FrameType
from typing import Any, ClassVar, Generic, Never
from weakref import ref

from redis_kit.core.flow import Flow
from redis_kit.core.text import unexpected
from redis_kit.locks.arguments import HINTS_OF_ACQUIRE, Seconds, blocking_seconds, flag
from redis_kit.locks.errors import NotHeld
from redis_kit.locks.leases.lease import LeaseSource
from redis_kit.locks.leases.ownership import LeaseT, current_owner
from redis_kit.locks.renewal import pending_releases

Block = tuple[LeaseT, "ref[Any]", FrameType]  # what it holds, its owner, and the frame of its statement


class BlockContext(Generic[LeaseT]):
    """A lock object, which threads and tasks may share. It states at creation for how long its callers wait."""

    lease_type: ClassVar[type[Any]]

    def __init__(self, blocking: Any, blocking_timeout: Any) -> None:
        self.blocking, self.blocking_timeout = flag("blocking", blocking), blocking_seconds(blocking_timeout)
        self._blocks: list[Block[LeaseT]] = []

    def acquire(
        self, blocking: bool | None = None, *, blocking_timeout: Seconds | None = None, **unknown: Never
    ) -> LeaseT | None:
        """Acquire a lease, and wait for it as stated here or at creation; None if it is still held by others then.

        0 to 31,536,000 seconds; None is the value stated at creation, as in redis-py. One round trip if it is free; a
        waiter sends one command per second. Raises AlreadyHeld if a caller would wait for itself, RedisUnavailable if
        the server is unavailable; its ``indeterminate`` means that the lease may be held until the server answers.
        """
        result = self._acquire(self.wait_seconds(blocking, blocking_timeout, unknown))
        return result if isinstance(result, self.lease_type) else None

    async def aacquire(
        self, blocking: bool | None = None, *, blocking_timeout: Seconds | None = None, **unknown: Never
    ) -> LeaseT | None:
        """See acquire()."""
        result = await self._aacquire(self.wait_seconds(blocking, blocking_timeout, unknown))
        return result if isinstance(result, self.lease_type) else None

    def acquire_or_raise(self) -> LeaseT:
        """Acquire a lease as ``with`` does, or raise LockNotAcquired."""
        return self.lease_or_raise(self._acquire(self.wait_seconds()))

    async def aacquire_or_raise(self) -> LeaseT:
        """See acquire_or_raise()."""
        return self.lease_or_raise(await self._aacquire(self.wait_seconds()))

    def lease_or_raise(self, result: Any) -> LeaseT:
        """Return what was acquired. Raises LockNotAcquired if it was refused."""
        raise NotImplementedError

    def acquire_flow(self, seconds: float) -> Flow[Any]:
        """Acquire a lease, and wait for it for some seconds. Return the lease, or the server's refusal."""
        raise NotImplementedError

    def sources(self) -> Sequence[LeaseSource]:
        """Return the locks and semaphores that are acquired, all of one connection."""
        raise NotImplementedError

    def _acquire(self, seconds: float) -> Any:
        start, sources = monotonic(), self.sources()
        try:
            steps = pending_releases.sent_first(sources, self.acquire_flow(seconds))
            return sources[0].run_flow(steps, if_closed=None)
        except BaseException:
            _abandon_since(start, sources)
            raise

    async def _aacquire(self, seconds: float) -> Any:
        start, sources = monotonic(), self.sources()
        try:
            steps = pending_releases.sent_first(sources, self.acquire_flow(seconds))
            return await sources[0].arun_flow(steps, if_closed=None)
        except BaseException:
            _abandon_since(start, sources)
            raise

    def wait_seconds(
        self, blocking: Any = None, blocking_timeout: Any = None, unknown: Mapping[str, Any] | None = None
    ) -> float:
        """Return for how many seconds a caller waits: 0 if it does not, infinity for ever. None means as at creation.

        Raises TypeError for arguments that acquire() does not have.
        """
        if unknown:
            raise unexpected("acquire", self.acquire, unknown, HINTS_OF_ACQUIRE)
        if not (self.blocking if blocking is None else flag("blocking", blocking)):
            return 0.0
        wait = self.blocking_timeout if blocking_timeout is None else blocking_seconds(blocking_timeout)
        return math.inf if wait is None else wait

    def __enter__(self) -> LeaseT:
        lease = self.acquire_or_raise()
        self._blocks.append((lease, ref(current_owner()), sys._getframe(1)))
        return lease

    def __exit__(self, *error: Any) -> None:
        self._leave(sys._getframe(1)).__exit__(*error)

    def __aenter__(self) -> Coroutine[Any, Any, LeaseT]:
        return self._aenter(sys._getframe(1))  # called in the block's frame, and awaited later

    def __aexit__(self, *error: Any) -> Coroutine[Any, Any, None]:
        return self._aexit(sys._getframe(1), error)

    async def _aenter(self, frame: FrameType) -> LeaseT:
        lease = await self.aacquire_or_raise()
        self._blocks.append((lease, ref(current_owner()), frame))
        return await lease.__aenter__()

    async def _aexit(self, frame: FrameType, error: Any) -> None:
        await self._leave(frame).__aexit__(*error)

    def _leave(self, frame: FrameType) -> LeaseT:
        """Return the lease of the block that is left.

        A ``with`` statement enters and leaves in one frame, whichever thread or task runs it. An ExitStack does not: it
        leaves the last block of the same owner or, if another thread or task entered it, the last one of all.
        """
        while blocks := self._blocks[::-1]:
            block = next((block for block in blocks if block[2] is frame), None) or _last(blocks)
            try:
                self._blocks.remove(block)
            except ValueError:  # another thread has left it
                continue
            return block[0]
        raise NotHeld(f"No block of {self!r} was entered.")


def _abandon_since(start: float, sources: Sequence[LeaseSource]) -> None:
    """Abandon leases that were acquired since a moment, but never reached their caller: they must not be renewed."""
    for source in sources:
        lease = source.owned_leases.latest()
        if lease and lease.acquired_at >= start and not lease.over:
            source.abandon(lease)


def _last(blocks: list[Block[LeaseT]]) -> Block[LeaseT]:
    owner = current_owner()
    own = next((block for block in blocks if block[1]() is owner), None)
    return own or next((block for block in blocks if block[0].held), blocks[0])
