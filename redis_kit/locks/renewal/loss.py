"""What happens when a lease is lost: its holder is told, exactly once."""

import asyncio
import contextlib
import logging
import os
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from asgiref.sync import iscoroutinefunction

from redis_kit.core.errors import RedisFailure
from redis_kit.locks.errors import CannotRenew
from redis_kit.locks.renewal import scheduler

if TYPE_CHECKING:
    from redis_kit.locks.leases.lease import Lease

logger = logging.getLogger("redis_kit.locks")
_running: set[Future[None]] = set()  # an event loop alone would not keep a task alive


class Keeper:
    """Knows who holds a lease that is renewed or watched, and tells them when it is lost."""

    def __init__(self, lease: "Lease", taker: Any) -> None:
        self.lease, self.taker = lease, taker
        self.thread = threading.get_ident()
        self.items: tuple[scheduler.Item, ...] = ()
        self.began = lease.taken_at  # when its time last began anew
        self.error: RedisFailure | None = None  # of the last try to make it longer
        self._decision = threading.Lock()  # taken by whoever comes first: the release, or the loss
        self._inside: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._cancelled = False

    @property
    def decided(self) -> bool:
        """Tell whether the lease was released or lost."""
        return self._decision.locked()

    def decide(self) -> bool:
        """Return True to the first caller, who then ends the lease."""
        return self._decision.acquire(blocking=False)

    def lose(self, why: str) -> bool:
        """End the lease as lost and tell its holder; False where it was released, or lost, before."""
        if not self.decide():
            return False
        self.lease.end(lost=True)
        logger.warning("%r was lost: %s", self.lease, why)
        if task := self._inside:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                task.get_loop().call_soon_threadsafe(self._cancel, task)
        if self.lease.source.on_lost:
            call = _Call(self)
            try:
                scheduler.add(call, lane=scheduler.CALLS)
            except CannotRenew:
                call.beat()
        return True

    def enter(self) -> None:
        """Note that the running task is inside ``async with``, where a cancellation can be told from others."""
        task = asyncio.current_task()
        if task is None or task is self._inside:
            return
        self._cancelling, self._inside = task.cancelling(), task
        if self.decided and self.lease.lost:
            task.get_loop().call_soon(self._cancel, task)

    def leave(self, error: BaseException | None) -> bool:
        """Note that the task leaves; True where ``error`` is nothing but the cancellation from here."""
        task, self._inside = self._inside, None
        if not task or not self._cancelled:
            return False
        self._cancelled = False
        # As asyncio.timeout() does: where somebody else cancelled the task too, it stays cancelled.
        return task.uncancel() <= self._cancelling and isinstance(error, asyncio.CancelledError)

    def _cancel(self, task: "asyncio.Task[Any]") -> None:
        if self._inside is task and not self._cancelled and not task.done():
            self._cancelled = True
            task.cancel()


def entered(lease: "Lease") -> None:
    """Note that the running task is inside ``async with`` of a lease."""
    if lease.keeper:
        lease.keeper.enter()


def left(lease: "Lease", error: BaseException | None) -> bool:
    """Note that it leaves; True where ``error`` means nothing but the loss of the lease."""
    if not lease.keeper or (lease.depth and not lease.lost):
        return False
    return lease.keeper.leave(error)


class _Call:
    """Calls ``on_lost``, in a thread where one that never returns keeps only others of its kind waiting."""

    def __init__(self, keeper: Keeper) -> None:
        self.lease, self.taker = keeper.lease, keeper.taker
        self._made = False

    def beat(self) -> None:
        """Call it, once."""
        if self._made:
            return
        self._made = True
        on_lost: Any = self.lease.source.on_lost
        try:
            if iscoroutinefunction(on_lost) or iscoroutinefunction(type(on_lost).__call__):
                self._schedule(on_lost)
            else:
                on_lost(self.lease)
        except BaseException:
            self._log()

    def _schedule(self, on_lost: Any) -> None:
        if not isinstance(self.taker, asyncio.Task):
            asyncio.run(on_lost(self.lease))
            return
        waiting = self._awaited(on_lost)
        try:
            future = asyncio.run_coroutine_threadsafe(waiting, self.taker.get_loop())
        except BaseException:
            waiting.close()
            raise
        _running.add(future)
        future.add_done_callback(_running.discard)

    async def _awaited(self, on_lost: Any) -> None:
        try:
            await on_lost(self.lease)
        except Exception:
            self._log()

    def _log(self) -> None:
        logger.exception("on_lost of %r failed.", self.lease)


os.register_at_fork(after_in_child=_running.clear)
