"""The loss of a lease: its holder is notified, exactly once."""

import asyncio
import contextlib
import logging
import os
import threading
from concurrent.futures import Future
from typing import Any

from asgiref.sync import iscoroutinefunction

from redis_kit.core.errors import RedisFailure
from redis_kit.locks.errors import CannotRenew
from redis_kit.locks.leases.lease import Lease, mark_ended, safe_deadline, state_of
from redis_kit.locks.renewal import scheduler

logger = logging.getLogger("redis_kit.locks")
_running: set[Future[None]] = set()  # an event loop alone would not keep a task alive


class LossNotifier:
    """Knows the owner of a lease that is renewed or watched, and notifies it when the lease is lost."""

    def __init__(self, lease: Lease, owner: Any) -> None:
        self.lease, self.owner = lease, owner
        self.thread = threading.get_ident()
        self.items: tuple[scheduler.Periodic, ...] = ()
        self.extended_at = lease.deadline - safe_deadline(0.0, state_of(lease).timeout)  # when it was requested
        self.error: RedisFailure | None = None  # of the last attempt to extend it
        self._decision = threading.Lock()  # held by what comes first: the release, or the loss
        self._inside: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._cancelled = False

    @property
    def decided(self) -> bool:
        """Tell whether the lease was released or lost."""
        return self._decision.locked()

    def decide(self) -> bool:
        """Return True to the first caller, which then ends the lease."""
        return self._decision.acquire(blocking=False)

    def lose(self, why: str) -> bool:
        """End the lease as lost and notify its owner; False if it was released, or lost, before."""
        if not self.decide():
            return False
        mark_ended(self.lease, lost=True)
        logger.warning("%r was lost: %s", self.lease, why)
        if task := self._inside:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                task.get_loop().call_soon_threadsafe(self._cancel, task)
        if self.lease.source.on_lost:
            call = _OnLostCall(self)
            try:
                scheduler.add(call, lane=scheduler.CALLS)
            except CannotRenew:
                call.run_once()
        return True

    def enter(self) -> None:
        """Note that the running task is inside ``async with``: if the lease is lost, the task is cancelled."""
        task = asyncio.current_task()
        if task is None or task is self._inside:
            return
        self._cancelling, self._inside = task.cancelling(), task
        if self.decided and self.lease.lost:
            task.get_loop().call_soon(self._cancel, task)

    def leave(self, error: BaseException | None) -> bool:
        """Note that the task leaves; True if ``error`` is nothing but the cancellation by this notifier."""
        task, self._inside = self._inside, None
        if not task or not self._cancelled or task is not asyncio.current_task():  # another task may leave
            return False
        self._cancelled = False
        # As asyncio.timeout() does: if something else cancelled the task too, it stays cancelled.
        return task.uncancel() <= self._cancelling and isinstance(error, asyncio.CancelledError)

    def _cancel(self, task: "asyncio.Task[Any]") -> None:
        if self._inside is task and not self._cancelled and not task.done():
            self._cancelled = True
            task.cancel()


class _OnLostCall:
    """Calls ``on_lost`` in a lane of its own: a function that never returns delays only other calls of ``on_lost``."""

    def __init__(self, notifier: LossNotifier) -> None:
        self.lease, self.owner = notifier.lease, notifier.owner
        self._called = False

    def run_once(self) -> None:
        """Call it, once."""
        if self._called:
            return
        self._called = True
        on_lost: Any = self.lease.source.on_lost
        try:
            if iscoroutinefunction(on_lost) or iscoroutinefunction(type(on_lost).__call__):
                self._schedule(on_lost)
            else:
                on_lost(self.lease)
        except BaseException:
            self._log()

    def _schedule(self, on_lost: Any) -> None:
        if not isinstance(self.owner, asyncio.Task):
            asyncio.run(on_lost(self.lease))
            return
        waiting = self._awaited(on_lost)
        try:
            future = asyncio.run_coroutine_threadsafe(waiting, self.owner.get_loop())
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
