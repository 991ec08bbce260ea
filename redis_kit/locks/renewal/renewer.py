"""Renewal: a lease is extended when a third of it is over, until its holder releases it or it is lost."""

import asyncio
import contextlib
import inspect
import logging
import os
import sys
import threading
import traceback
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
    mark_ended,
    note_extension,
    safe_deadline,
    state_of,
)
from redis_kit.locks.leases.ownership import current_owner
from redis_kit.locks.renewal import pending_releases, scheduler

logger = logging.getLogger("redis_kit.locks")
_running: set[Future[None]] = set()  # an event loop alone would not keep a task alive
SHARE = 1 / 3  # of a lease that is over when it is renewed
LAST_RETRY = 1.0  # seconds, at most, until a failed renewal is retried


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
        call = _OnLostCall(self) if self.lease.source.on_lost else None
        if call and call.is_for_loop:
            call.run_once()  # it begins before the task is cancelled, with which its loop may end
        if task := self._inside:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                task.get_loop().call_soon_threadsafe(self._cancel, task)
        if call and not call.is_for_loop:
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
        self.on_lost: Any = self.lease.source.on_lost
        self.is_for_loop = isinstance(self.owner, asyncio.Task) and is_async(self.on_lost)
        self._called = False

    def run_once(self) -> None:
        """Call it, once. A coroutine that it returns runs in the loop of the lease, if that has one."""
        if self._called:
            return
        self._called = True
        try:
            if inspect.iscoroutine(result := self.on_lost(self.lease)):
                self._schedule(result)
        except BaseException as error:
            self._log(error)

    def _schedule(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        if not isinstance(self.owner, asyncio.Task):
            asyncio.run(coroutine)
            return
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self.owner.get_loop())
        except BaseException:
            coroutine.close()
            raise
        _running.add(future)
        future.add_done_callback(self._end)

    def _end(self, future: Future[None]) -> None:
        _running.discard(future)
        if future.cancelled():
            logger.warning("on_lost of %r was cancelled, as asyncio.run() does to all tasks at its end.", self.lease)
        elif error := future.exception():
            self._log(error)

    def _log(self, error: BaseException) -> None:
        logger.error("on_lost of %r failed.", self.lease, exc_info=error)


os.register_at_fork(after_in_child=_running.clear)


def watch(lease: Lease) -> None:
    """Watch a lease that was just acquired, and renew it if its source says so, until it is released or lost.

    Raises CannotRenew if no thread can be started for it; then nothing is done. No round trip.
    """
    notifier = state_of(lease).notifier = LossNotifier(lease, current_owner())
    watchdog = _Watchdog(notifier)
    notifier.items = (watchdog, watchdog.renewal) if watchdog.renewal else (watchdog,)
    try:
        reschedule(lease)
    except BaseException:
        stop(lease)
        raise


def stop(lease: Lease) -> None:
    """Stop watching and renewing: from now on the lease can't be lost, only released. No round trip."""
    state = state_of(lease)
    notifier, state.notifier = state.notifier, None
    if notifier:
        notifier.decide()
        for item in notifier.items:
            scheduler.remove(item)


def lose(lease: Lease, why: str) -> None:
    """End a lease that the server does not know any more, and notify its owner if it is watched. No round trip."""
    notifier = state_of(lease).notifier
    if not (notifier and notifier.lose(why)):
        mark_ended(lease, lost=True)


def reschedule(lease: Lease, *, extended_at: float | None = None, error: BaseException | None = None) -> None:
    """Follow a lease's deadline, which an extension changed, or may have changed: it may be earlier than before.

    ``extended_at`` is when its TTL began again, ``error`` is what the extension failed with.
    """
    notifier = state_of(lease).notifier
    if notifier is None or notifier.decided:
        return
    notifier.extended_at = notifier.extended_at if extended_at is None else extended_at
    notifier.error = error if isinstance(error, RedisFailure) else None
    now = monotonic()
    watchdog, *renewal = notifier.items
    scheduler.add(watchdog, after=lease.deadline - now, lane=scheduler.CLOCK)
    for item in renewal:
        scheduler.add(item, after=_due(lease) - now, lane=lease.source.using)


class _Renewal:
    """Renews one lease."""

    def __init__(self, notifier: LossNotifier) -> None:
        self.notifier, self.lease = notifier, notifier.lease
        max_hold = notifier.lease.source.max_hold
        self.end = None if max_hold is None else notifier.lease.acquired_at + max_hold
        self.reaches_max_hold = False

    def run_once(self) -> float | None:
        """Renew it if that is due. One round trip then."""
        lease, now = self.lease, monotonic()
        if self.notifier.decided or self.reaches_max_hold or now >= lease.deadline:
            return None
        due = _due(lease)
        if now < due:
            return due - now
        full = state_of(lease).timeout
        timeout = full if self.end is None else min(full, self.end - now)
        if timeout < full and safe_deadline(now, timeout) <= lease.deadline:
            self.reaches_max_hold = True
            return None
        return self._renew(now, timeout)

    def _renew(self, sent_at: float, timeout: float) -> float | None:
        lease, before = self.lease, self.lease.deadline
        note_extension(lease, sent_at, timeout)
        step = lease.source.extend_step(lease.token, round(timeout * 1000), ExtendMode.AT_LEAST)
        try:
            ttl_ms = lease.source.run_flow(flow.single(step))
        except RedisFailure as error:
            self.notifier.error = error
            return full_jitter(0, first=LAST_RETRY, longest=state_of(lease).timeout / 10)
        if not ttl_ms:
            self.notifier.lose("the server does not know it any more.")
            return None
        # Unless its holder made it shorter in the meantime.
        if lease.deadline == before:
            lease.deadline = safe_deadline(sent_at, ttl_ms / 1000)
        self.notifier.extended_at, self.notifier.error = sent_at, None
        self.reaches_max_hold = timeout < state_of(lease).timeout
        return _due(lease) - monotonic()


class _Watchdog:
    """Notices that a lease has timed out, whether the server answers or not."""

    def __init__(self, notifier: LossNotifier) -> None:
        self.notifier, self.lease = notifier, notifier.lease
        self.renewal = _Renewal(notifier) if notifier.lease.source.renew else None

    def run_once(self) -> float | None:
        """Compare the deadline with the clock. No round trip."""
        lease = self.lease
        remaining = lease.deadline - monotonic()
        if self.notifier.decided:
            return None
        if remaining > 0:
            return remaining
        after = state_of(lease).timeout * DRIFT + MARGIN
        if self.notifier.lose(self._why()) and state_of(lease).extended_until > monotonic():
            # An extension whose reply was lost must not keep others out for longer than the lease.
            pending_releases.add(lease.source, lease.token, ends_by=lease.ends_by, after=after)
        return None

    def _why(self) -> str:
        renewal, error = self.renewal, self.notifier.error
        if renewal is None:
            return f"it timed out, and {f'extend() failed: {error}' if error else 'was not extended.'}"
        if renewal.reaches_max_hold:
            return (
                f"it was held for {number(self.lease.source.max_hold or 0)} seconds, its max_hold, and its holder is "
                "still here:\n"
                f"{stack_of(self.notifier.owner, self.notifier.thread)}"
            )
        reason = f"the last attempt failed: {error}" if error else "the renewal came too late."
        extended_at = self.notifier.extended_at
        timeout = round((self.lease.deadline + MARGIN - extended_at) / (1 - DRIFT), 1)
        return f"its timeout is {number(timeout)} s, it was renewed {monotonic() - extended_at:.1f} s ago, and {reason}"


def _due(lease: Lease) -> float:
    return lease.deadline - state_of(lease).timeout * (1 - SHARE)


def stack_of(owner: Any, thread: int) -> str:
    """Return the stack of a task, or of the thread with this identifier, as text; the thread may run on."""
    if isinstance(owner, asyncio.Task):
        if owner.done():
            return f"(the task {owner.get_name()} has ended)"
        if asyncio.current_task(owner.get_loop()) is not owner:
            return "".join(_suspended(owner.get_coro()))
    elif not owner.is_alive():
        return f"(the thread {owner.name} has ended)"
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)) if frame else "(its thread has ended)"


def _suspended(coroutine: Any) -> list[str]:
    lines: list[str] = []
    while (frame := getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)) is not None:
        lines += traceback.format_stack(frame, limit=1)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return lines
