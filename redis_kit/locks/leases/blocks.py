"""The ``with`` blocks of a lock object: each ends the lease that it acquired, wherever it is left."""

import sys
from collections.abc import Coroutine
from types import FrameType
from typing import Any, Generic, TypeVar
from weakref import ref

from redis_kit.locks.errors import NotHeld
from redis_kit.locks.leases.group import LeaseGroup
from redis_kit.locks.leases.lease import Lease
from redis_kit.locks.leases.ownership import current_owner

LeaseT = TypeVar("LeaseT", Lease, LeaseGroup)


Block = tuple[LeaseT, "ref[Any]", FrameType]  # what it holds, its owner, and the frame of its statement


class BlockContext(Generic[LeaseT]):
    """``with`` and ``async with`` of a lock object, which threads and tasks may share."""

    def __init__(self) -> None:
        self._blocks: list[Block[LeaseT]] = []

    def acquire_or_raise(self) -> LeaseT:
        """Acquire a lease as ``with`` does, or raise LockNotAcquired."""
        raise NotImplementedError

    async def aacquire_or_raise(self) -> LeaseT:
        """See acquire_or_raise()."""
        raise NotImplementedError

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


def _last(blocks: list[Block[LeaseT]]) -> Block[LeaseT]:
    owner = current_owner()
    own = next((block for block in blocks if block[1]() is owner), None)
    return own or next((block for block in blocks if block[0].held), blocks[0])
