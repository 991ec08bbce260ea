"""Renewal: a lease is extended when a third of it is over, until its holder releases it."""

import asyncio
import sys
import traceback
from time import monotonic
from typing import Any

from redis_kit.core import flow
from redis_kit.core.client.backoff import full_jitter
from redis_kit.core.errors import RedisFailure
from redis_kit.core.text import number
from redis_kit.locks.leases.lease import DRIFT, MARGIN, Lease, mark_ended, note_extension, safe_deadline, state_of
from redis_kit.locks.leases.ownership import current_owner
from redis_kit.locks.leases.source import ExtendMode
from redis_kit.locks.renewal import pending_releases, scheduler
from redis_kit.locks.renewal.loss import LossNotifier

SHARE = 1 / 3  # of a lease that is over when it is renewed
LAST_RETRY = 1.0  # seconds, at most, until a failed renewal is retried


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
    if isinstance(notifier, LossNotifier):
        notifier.decide()
        for item in notifier.items:
            scheduler.remove(item)


def lose(lease: Lease, why: str) -> None:
    """End a lease that the server does not know any more, and notify its owner if it is watched. No round trip."""
    notifier = state_of(lease).notifier
    if not (isinstance(notifier, LossNotifier) and notifier.lose(why)):
        mark_ended(lease, lost=True)


def reschedule(lease: Lease, *, extended_at: float | None = None, error: BaseException | None = None) -> None:
    """Follow a lease's deadline, which an extension changed, or may have changed: it may be earlier than before.

    ``extended_at`` is when its TTL began again, ``error`` is what the extension failed with.
    """
    notifier = state_of(lease).notifier
    if not isinstance(notifier, LossNotifier) or notifier.decided:
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
            return _retry_pause(state_of(lease).timeout)
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


def _retry_pause(timeout: float) -> float:
    return full_jitter(0, first=LAST_RETRY, longest=timeout / 10)


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
