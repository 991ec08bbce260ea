"""Renewal: a lease is extended when a third of it is over, until its holder releases it or it is lost."""

import asyncio
import contextlib
import inspect
import logging
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from time import monotonic
from typing import Any

from redis_kit.core import flow
from redis_kit.core.awaitables import is_async
from redis_kit.core.client.backoff import full_jitter
from redis_kit.core.errors import RedisFailure
from redis_kit.core.text import number
from redis_kit.locks.errors import CannotRenew
from redis_kit.locks.leases.lease import (
    DRIFT,
    MARGIN,
    ExtendMode,
    Lease,
    current_owner,
    mark_ended,
    note_extension,
    safe_deadline,
)
from redis_kit.locks.renewal import pending_releases, scheduler

logger = logging.getLogger("redis_kit.locks")
_running: set[Future[None]] = set()  # an event loop alone would not keep a task alive
SHARE = 1 / 3  # of a lease that is over when it is renewed
LAST_RETRY = 1.0  # seconds, at most, until a failed renewal is retried


class Watch:
    """Watches a lease, renews it if its source says so, and notifies its owner when it is lost."""

    def __init__(self, lease: Lease, owner: Any) -> None:
        self.lease, self.owner = lease, owner
        self.error: RedisFailure | None = None  # of the last attempt to extend it
        self.reaches_max_hold = False
        self._decision = threading.Lock()  # held by what comes first: the release, or the loss
        self._inside: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._cancelled = False
        self._called = False

    @property
    def decided(self) -> bool:
        """Tell whether the lease was released or lost."""
        return self._decision.locked()

    def decide(self) -> bool:
        """Return True to the first caller, which then ends the lease."""
        return self._decision.acquire(blocking=False)

    def schedule(self) -> None:
        """Plan the next runs, also if they were planned before: the deadline may have changed."""
        now, source = monotonic(), self.lease.source
        scheduler.add(self.compare_clock, after=self.lease.deadline - now, lane=scheduler.CLOCK)
        if source.renew:
            scheduler.add(self.renew, after=_due(self.lease) - now, lane=source.using)

    def stop(self) -> None:
        """Stop: from now on the lease can't be lost, only released."""
        self.decide()
        scheduler.remove(self.compare_clock)
        scheduler.remove(self.renew)

    def renew(self) -> float | None:
        """Renew the lease if that is due, and return the seconds until the next run. One round trip then."""
        lease, now, full = self.lease, monotonic(), self.lease.timeout
        before, max_hold, due = lease.deadline, lease.source.max_hold, _due(lease)
        if self.decided or self.reaches_max_hold or now >= before:
            return None
        if now < due:
            return due - now
        timeout = full if max_hold is None else min(full, lease.acquired_at + max_hold - now)
        if timeout < full and safe_deadline(now, timeout) <= before:
            self.reaches_max_hold = True
            return None
        note_extension(lease, now, timeout)
        step = lease.source.extend_step(lease.token, round(timeout * 1000), ExtendMode.AT_LEAST)
        try:
            ttl_ms = lease.source.run_flow(flow.single(step))
        except RedisFailure as error:
            self.error = error
            return full_jitter(0, first=LAST_RETRY, longest=full / 10)
        if not ttl_ms:
            self.lose("the server does not know it any more.")
            return None
        if lease.deadline == before:  # else its holder made it shorter in the meantime
            lease.deadline = safe_deadline(now, ttl_ms / 1000)
        self.error = None
        self.reaches_max_hold = timeout < lease.timeout
        return _due(lease) - monotonic()

    def compare_clock(self) -> float | None:
        """Notice that the lease has timed out, whether the server answers or not. No round trip."""
        lease, remaining = self.lease, self.lease.deadline - monotonic()
        if self.decided:
            return None
        if remaining > 0:
            return remaining
        after = lease.timeout * DRIFT + MARGIN
        if self.lose(self._why()) and lease.extended_until > monotonic():
            # An extension whose reply was lost must not keep others out for longer than the lease.
            pending_releases.add(lease.source, lease.token, ends_by=lease.ends_by, after=after)
        return None

    def _why(self) -> str:
        source, error = self.lease.source, self.error
        if not source.renew:
            return f"it timed out, and {f'extend() failed: {error}' if error else 'was not extended.'}"
        if self.reaches_max_hold:
            return f"it was held for {number(source.max_hold or 0)} seconds, its max_hold."
        return f"it ended, and {f'the last attempt failed: {error}' if error else 'the renewal came too late.'}"

    def lose(self, why: str) -> bool:
        """End the lease as lost and notify its owner; False if it was released, or lost, before."""
        if not self.decide():
            return False
        mark_ended(self.lease, lost=True)
        logger.warning("%r was lost: %s", self.lease, why)
        on_lost: Any = self.lease.source.on_lost
        is_for_loop = isinstance(self.owner, asyncio.Task) and is_async(on_lost)
        if on_lost and is_for_loop:
            self.call_on_lost()  # it begins before the task is cancelled, with which its loop may end
        if task := self._inside:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                task.get_loop().call_soon_threadsafe(self._cancel, task)
        if on_lost and not is_for_loop:
            try:  # a lane of its own: a function that never returns delays only other calls of on_lost
                scheduler.add(self.call_on_lost, lane=scheduler.CALLS)
            except CannotRenew:
                self.call_on_lost()
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
        """Note that the task leaves; True if ``error`` is nothing but the cancellation by this watch."""
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

    def call_on_lost(self) -> None:
        """Call ``on_lost``, once. A coroutine that it returns runs in the loop of the lease, if that has one."""
        if self._called:
            return
        self._called, on_lost = True, self.lease.source.on_lost
        try:
            if on_lost and inspect.iscoroutine(result := on_lost(self.lease)):
                self._run_coroutine(result)
        except BaseException as error:
            self._log_failure(error)

    def _run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        if not isinstance(self.owner, asyncio.Task):
            asyncio.run(coroutine)
            return
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self.owner.get_loop())
        except BaseException:
            coroutine.close()
            raise
        _running.add(future)
        future.add_done_callback(self._end_call)

    def _end_call(self, future: Future[None]) -> None:
        _running.discard(future)
        if future.cancelled():
            logger.warning("on_lost of %r was cancelled, as asyncio.run() does to all tasks at its end.", self.lease)
        elif error := future.exception():
            self._log_failure(error)

    def _log_failure(self, error: BaseException) -> None:
        logger.error("on_lost of %r failed.", self.lease, exc_info=error)


os.register_at_fork(after_in_child=_running.clear)


def start(lease: Lease) -> None:
    """Watch a lease that was just acquired, and renew it if its source says so, until it is released or lost.

    Raises CannotRenew if no thread can be started for it; then nothing is done. No round trip.
    """
    watch = lease.watch = Watch(lease, current_owner())
    try:
        watch.schedule()
    except BaseException:
        stop(lease)
        raise


def stop(lease: Lease) -> None:
    """Stop watching and renewing: from now on the lease can't be lost, only released. No round trip."""
    watch, lease.watch = lease.watch, None
    if watch:
        watch.stop()


def lose(lease: Lease, why: str) -> None:
    """End a lease that the server does not know any more, and notify its owner if it is watched. No round trip."""
    watch = lease.watch
    if not (watch and watch.lose(why)):
        mark_ended(lease, lost=True)


def reschedule(lease: Lease, *, error: BaseException | None = None) -> None:
    """Follow a lease's deadline, which an extension changed, or may have changed: it may be earlier than before.

    ``error`` is what the extension failed with.
    """
    watch = lease.watch
    if watch and not watch.decided:
        watch.error = error if isinstance(error, RedisFailure) else None
        watch.schedule()


def _due(lease: Lease) -> float:
    return lease.deadline - lease.timeout * (1 - SHARE)
