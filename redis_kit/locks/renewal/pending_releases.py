"""Releases that did not get through: they are tried again in the background until the server has answered.

Each connection has one item among what the thread of ``renewals`` does; it sleeps where nothing is pending. A release
names a token, so it never ends the lease of anybody else, and may be sent as often as needed.
"""

import atexit
import contextlib
import logging
import os
import random
from collections.abc import Iterable, Sequence
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.signals import redis_recovered
from redis_kit.core.steps import TolerantBatch
from redis_kit.locks.errors import CannotRenew
from redis_kit.locks.renewal import scheduler

if TYPE_CHECKING:
    from redis_kit.locks.kinds.base import Leasing

logger = logging.getLogger("redis_kit.locks")
Result = TypeVar("Result")

AT_ONCE = 100  # releases in one round trip
PAUSE = (0.1, 0.5)  # seconds until the next try while the server does not answer
REFUSED = 1.0  # seconds until the next try after the server answered with an error
TRYING = 1.0  # seconds after which one beat tries no further bucket where one did not answer
ON_ITS_WAY = 1.0  # seconds in which a command whose reply was lost may still reach the server
AWAY = 3600.0  # seconds without an answer after which an attempt is forgotten
GOES_ON = (
    "The lease is over for its holder. "
    "The release is repeated in the background until it succeeds or the lease has timed out."
)


class PendingRelease:
    """A token to give back. ``ends_by`` is when its lease has surely ended; None where it may not have begun yet."""

    __slots__ = ("ends_by", "looked", "source", "token", "until", "when")

    def __init__(self, source: "Leasing", token: str, *, ends_by: float | None, when: float) -> None:
        self.source, self.token, self.ends_by, self.when = source, token, ends_by, when
        self.until = monotonic() + AWAY if ends_by is None else ends_by
        self.looked = False  # the server has answered once that it knows no such token

    def is_settled_by(self, reply: Any) -> bool:
        """Tell whether the server's answer is the last word; else note when to ask again."""
        if isinstance(reply, Exception):
            self.when = monotonic() + REFUSED
            return False
        if reply or self.looked or self.ends_by is not None:
            return True
        self.looked, self.when = True, monotonic() + ON_ITS_WAY
        return False


class PendingReleases:
    """The pending releases of one connection.

    ``due`` is when the next try is planned. It is set to infinity before a beat looks at the entries, and an entry is
    there before its caller looks at ``due``; so one of the two sees the other, without a lock.
    """

    def __init__(self, using: str) -> None:
        self.using = using
        self.entries: dict[str, PendingRelease] = {}
        self.due, self.is_away = inf, False

    def add(self, entry: PendingRelease) -> None:
        """Keep an entry, and wake the thread unless it tries soon anyway."""
        self.entries[entry.token] = entry
        if not self.is_away and entry.when < self.due:
            self.wake(entry.when)

    def wake(self, when: float) -> None:
        """Let the next beat come at a moment of the monotonic clock."""
        self.due = when
        try:
            scheduler.add(self, after=max(when - monotonic(), 0.0), lane=self.using)
        except CannotRenew:  # the interpreter ends: the last try is that of _at_exit()
            self.due = inf

    def beat(self) -> float:
        """Try those that are due. One round trip for each bucket, or none."""
        self.due, began, away = inf, monotonic(), False
        for group in self._groups(began):
            try:
                self.settle(group, group[0].source._run(answers(group)))
            except RedisFailure:
                away = True
                self._put_last(group)
            if away and monotonic() - began > TRYING:
                break
        self.is_away = away
        first = min((entry.when for entry in list(self.entries.values())), default=inf)
        pause = random.uniform(*PAUSE) if away else max(first - monotonic(), 0.0)  # noqa: S311 -- spreads tries
        self.due = monotonic() + pause
        return pause

    def settle(self, entries: Sequence[PendingRelease], replies: Sequence[Any]) -> None:
        """Forget what the server's answers are the last word on."""
        for entry, reply in zip(entries, replies, strict=True):
            if entry.is_settled_by(reply):
                self.entries.pop(entry.token, None)

    def of(self, members: Iterable[str]) -> list[PendingRelease]:
        """Return some of those whose lock or semaphore is among the members."""
        wanted = set(members)
        return [entry for entry in list(self.entries.values()) if entry.source.member in wanted][:AT_ONCE]

    def _groups(self, now: float) -> list[list[PendingRelease]]:
        """Return what is due by bucket, which is on one node of a Cluster, and forget what has ended by itself."""
        groups: dict[str, list[PendingRelease]] = {}
        ended = 0
        for entry in list(self.entries.values()):
            if entry.until <= now:
                ended += self.entries.pop(entry.token, None) is not None
            elif entry.when <= now:
                groups.setdefault(entry.source.tag(), []).append(entry)
        if ended:
            logger.info("Leases of %r that ended by themselves before a release got through: %d", self.using, ended)
        return [group[:AT_ONCE] for group in groups.values()]

    def _put_last(self, group: Sequence[PendingRelease]) -> None:
        for entry in group:
            if self.entries.pop(entry.token, None):
                self.entries[entry.token] = entry


def add(source: "Leasing", token: str, *, ends_by: float | None = None, after: float = 0.0) -> None:
    """Give a token back in ``after`` seconds, and again until the server has answered. No round trip, and no wait.

    Give up when the lease has surely ended, or an hour after an attempt that nobody knows the outcome of.
    """
    queue = _queues.get(source.using) or _queues.setdefault(source.using, PendingReleases(source.using))
    queue.add(PendingRelease(source, token, ends_by=ends_by, when=monotonic() + after))


def note(error: BaseException) -> None:
    """Let the error of a failed release say that it is repeated: once, also where several leases fail by one error."""
    if isinstance(error, RedisFailure) and GOES_ON not in getattr(error, "__notes__", ()):
        error.add_note(GOES_ON)


def first(sources: Sequence["Leasing"], steps: Flow[Result]) -> Flow[Result]:
    """Return a flow that gives back what is pending of the same names, so that no caller is kept out by itself."""
    queue = _queues.get(sources[0].using)
    if queue and queue.entries and (mine := queue.of(source.member for source in sources)):
        return _first(queue, mine, steps)
    return steps


def _first(queue: PendingReleases, mine: Sequence[PendingRelease], steps: Flow[Result]) -> Flow[Result]:
    queue.settle(mine, (yield from answers(mine)))
    return (yield from steps)


def answers(entries: Sequence[PendingRelease]) -> Flow[list[Any]]:
    """Send releases in one round trip, and return the answers, errors among them."""
    replies: list[Any] = yield TolerantBatch([entry.source._give_back(entry.token) for entry in entries])
    return replies


_queues: dict[str, PendingReleases] = {}


def _recovered(using: str, **_: Any) -> None:
    queue = _queues.get(using)
    if queue and queue.entries:
        queue.wake(monotonic())


def _at_exit() -> None:
    # The thread ends with the interpreter, often before it could send what a cancellation at the end left to it.
    for queue in list(_queues.values()):
        if queue.entries:
            with contextlib.suppress(Exception):
                queue.beat()


redis_recovered.connect(_recovered, dispatch_uid="redis_kit.locks.renewal.pending_releases")
atexit.register(_at_exit)
os.register_at_fork(after_in_child=_queues.clear)
