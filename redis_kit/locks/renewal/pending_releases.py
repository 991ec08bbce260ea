"""Releases that failed: they are retried in the background until the server has answered.

Each connection has one item in the scheduler, which sleeps while nothing is pending. A release names a token, so it
never ends the lease of another holder, and can be sent as often as needed.
"""

import atexit
import contextlib
import logging
import os
import random
from collections.abc import Sequence
from math import inf
from time import monotonic
from typing import Any, TypeVar

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.signals import redis_recovered
from redis_kit.core.steps import TolerantBatch
from redis_kit.locks.errors import CannotRenew
from redis_kit.locks.leases.lease import LeaseSource
from redis_kit.locks.renewal import scheduler

logger = logging.getLogger("redis_kit.locks")
Result = TypeVar("Result")

BATCH = 100  # releases in one round trip
RETRY_UNAVAILABLE = (0.1, 0.5)  # seconds until the next attempt while the server is unavailable
RETRY_ERROR = 1.0  # seconds until the next attempt after the server answered with an error
MAX_RUN = 1.0  # seconds after which one run sends to no further bucket, if one was unavailable
IN_TRANSIT = 1.0  # seconds in which a command whose reply was lost may still reach the server
GIVE_UP_AFTER = 3600.0  # seconds without an answer after which an attempt is forgotten
RETRY_NOTE = (
    "The lease has ended for its holder. "
    "The release is repeated in the background until it succeeds or the lease has timed out."
)


class PendingRelease:
    """A token to release. ``ends_by`` is when its lease has surely ended; None if it may not have begun yet."""

    __slots__ = ("ends_by", "source", "token", "until", "was_unknown", "when")

    def __init__(self, source: LeaseSource, token: str, *, ends_by: float | None, when: float) -> None:
        self.source, self.token, self.ends_by, self.when = source, token, ends_by, when
        self.until = monotonic() + GIVE_UP_AFTER if ends_by is None else ends_by
        self.was_unknown = False  # the server has answered once that it does not know the token

    def is_finished_by(self, reply: Any) -> bool:
        """Tell whether the server's answer is final; else note when to send it again."""
        if isinstance(reply, Exception):
            self.when = monotonic() + RETRY_ERROR
            return False
        if reply or self.was_unknown or self.ends_by is not None:
            return True
        self.was_unknown, self.when = True, monotonic() + IN_TRANSIT
        return False


class PendingReleases:
    """The pending releases of one connection.

    ``due`` is when the next run is planned. A run sets it to infinity before it reads the entries, and add() stores an
    entry before it reads ``due``; so one of the two sees the other, without a lock.
    """

    def __init__(self, using: str) -> None:
        self.using = using
        self.entries: dict[str, PendingRelease] = {}
        self.due, self.is_unavailable = inf, False

    def add(self, entry: PendingRelease) -> None:
        """Store an entry, and wake the thread unless its next run is early enough."""
        self.entries[entry.token] = entry
        if not self.is_unavailable and entry.when < self.due:
            self.wake(entry.when)

    def wake(self, when: float) -> None:
        """Plan the next run for a moment of the monotonic clock."""
        self.due = when
        try:
            scheduler.add(self.run_once, after=max(when - monotonic(), 0.0), lane=self.using)
        except CannotRenew:  # the interpreter ends: _at_exit() makes the last attempt
            self.due = inf

    def run_once(self) -> float:
        """Send those that are due. One round trip for each bucket, or none."""
        self.due, start, unavailable = inf, monotonic(), False
        for group in self._groups(start):
            try:
                group[0].source.run_flow(self.send(group))
            except RedisFailure:
                unavailable = True
                self._move_to_end(group)
            if unavailable and monotonic() - start > MAX_RUN:
                break
        self.is_unavailable = unavailable
        if unavailable:
            pause = random.uniform(*RETRY_UNAVAILABLE)  # noqa: S311 -- spreads retries
        else:
            pause = max(min((entry.when for entry in list(self.entries.values())), default=inf) - monotonic(), 0.0)
        self.due = monotonic() + pause
        return pause

    def send(self, entries: Sequence[PendingRelease]) -> Flow[None]:
        """Send some entries, and remove those for which the server's answer is final. One round trip."""
        steps = [entry.source.release_step(entry.token, unsure=True) for entry in entries]
        replies = yield TolerantBatch(steps)
        for entry, reply in zip(entries, replies, strict=True):
            if entry.is_finished_by(reply):
                self.entries.pop(entry.token, None)

    def _groups(self, now: float) -> list[list[PendingRelease]]:
        """Return the due entries by bucket, which is on one node of a Cluster, and remove those that timed out."""
        groups: dict[str, list[PendingRelease]] = {}
        ended = 0
        for entry in list(self.entries.values()):
            if entry.until <= now:
                ended += self.entries.pop(entry.token, None) is not None
            elif entry.when <= now:
                groups.setdefault(entry.source.tag(), []).append(entry)
        if ended:
            logger.info("Leases on %r that timed out before they could be released: %d", self.using, ended)
        return [group[:BATCH] for group in groups.values()]

    def _move_to_end(self, group: Sequence[PendingRelease]) -> None:
        for entry in group:
            if self.entries.pop(entry.token, None):
                self.entries[entry.token] = entry


def add(source: LeaseSource, token: str, *, ends_by: float | None = None, after: float = 0.0) -> None:
    """Release a token in ``after`` seconds, and again until the server has answered. No round trip, and no wait.

    Stop when the lease has surely ended, or an hour after an attempt whose outcome is unknown.
    """
    queue = _queues.get(source.using) or _queues.setdefault(source.using, PendingReleases(source.using))
    queue.add(PendingRelease(source, token, ends_by=ends_by, when=monotonic() + after))


def add_retry_note(error: BaseException) -> None:
    """Note in the error of a failed release that the release is repeated; once, even if several leases share it."""
    if isinstance(error, RedisFailure) and RETRY_NOTE not in getattr(error, "__notes__", ()):
        error.add_note(RETRY_NOTE)


def sent_first(sources: Sequence[LeaseSource], steps: Flow[Result]) -> Flow[Result]:
    """Return the flow, after the pending releases of the same names: they must not keep their own process out."""
    queue = _queues.get(sources[0].using)
    if not queue or not queue.entries:
        return steps
    members = {source.member for source in sources}
    entries = [entry for entry in list(queue.entries.values()) if entry.source.member in members][:BATCH]
    return _after(queue.send(entries), steps) if entries else steps


def _after(first: Flow[None], steps: Flow[Result]) -> Flow[Result]:
    yield from first
    return (yield from steps)


_queues: dict[str, PendingReleases] = {}


def _recovered(using: str, **_: Any) -> None:
    queue = _queues.get(using)
    if queue and queue.entries:
        queue.wake(monotonic())


def _at_exit() -> None:
    # The thread ends with the interpreter, often before it could send the release of a late cancellation.
    for queue in list(_queues.values()):
        if queue.entries:
            with contextlib.suppress(Exception):
                queue.run_once()


redis_recovered.connect(_recovered, dispatch_uid="redis_kit.locks.renewal.pending_releases")
atexit.register(_at_exit)
os.register_at_fork(after_in_child=_queues.clear)
