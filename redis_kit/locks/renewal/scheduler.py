"""Periodic work, such as renewing leases: one daemon thread for all the work of one lane.

A lane is a connection's alias. While its server is unavailable and each run waits for a time limit, the runs of other
lanes are on time. The lane ``CLOCK`` is for work that never waits, such as watching a deadline.
"""

import contextlib
import heapq
import itertools
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from math import inf
from queue import Empty
from time import monotonic

from redis_kit.core.client.backoff import full_jitter
from redis_kit.core.values.event_queue import EventQueue
from redis_kit.locks.errors import CannotRenew

logger = logging.getLogger("redis_kit.locks")

CLOCK, CALLS = "(clock)", "(on_lost)"
MAX_STALE = 1000  # entries without an item that may wait to be removed
FIRST_RETRY, LAST_RETRY = 0.1, 5.0  # seconds within which failed work is retried: at first, and after many failures


#: Does its work once, and returns the seconds until the next run; None to stop. It may run once more than needed.
Work = Callable[[], float | None]


def add(item: Work, *, after: float = 0.0, lane: str = "default") -> None:
    """Run an item ``after`` some seconds, and then as often as it says. If it is scheduled already, it is moved.

    Raises CannotRenew if the thread of its lane can't be started; the item is not scheduled then. No round trip, and
    no wait.
    """
    loop = _loops.get(lane)
    if loop is None:
        loop = _loops.setdefault(lane, Loop(lane))
    loop.add(item, after)


def remove(item: Work) -> None:
    """Stop running an item. A run that has begun goes on to its end."""
    for loop in list(_loops.values()):
        loop.remove(item)


class _Entry:
    """When an item of a loop runs next."""

    __slots__ = ("failures", "item", "when")

    def __init__(self, item: Work, when: float) -> None:
        self.item: Work | None = item
        self.when, self.failures = when, 0


class _WakeUps(EventQueue[None]):
    """The wake-ups of one thread: a replaced thread that is still alive can't take those of the next one."""

    __slots__ = ("sleeps_until",)

    def __init__(self) -> None:
        super().__init__()
        self.sleeps_until = -inf  # only work that is due earlier wakes the thread


class Loop:
    """One lane's thread, which sleeps until the next run is due.

    Nothing is guarded by a lock that an asynchronous exception in its thread, or a signal handler in another thread,
    could leave locked: ``_entries`` holds the work to do, and the thread builds its heap from it.
    """

    def __init__(self, lane: str) -> None:
        self.lane = lane
        self._entries: dict[Work, _Entry] = {}
        self._new: deque[_Entry] = deque()
        self._heap: list[tuple[float, int, _Entry]] = []
        self._numbers = itertools.count()
        self._wake_ups = _WakeUps()  # of the present thread
        self._starting = threading.RLock()
        self._thread: threading.Thread | None = None

    def add(self, item: Work, after: float) -> None:
        """See add()."""
        self.remove(item)
        self._entries[item] = entry = _Entry(item, monotonic() + after)
        self._new.append(entry)
        try:
            self.revive()
        except BaseException:
            self.remove(item)
            raise
        wake_ups = self._wake_ups
        if entry.when < wake_ups.sleeps_until or len(self._new) > MAX_STALE:
            wake_ups.put(None)

    def remove(self, item: Work) -> None:
        """See remove()."""
        if entry := self._entries.pop(item, None):
            entry.item = None  # the heap may still hold the entry

    def revive(self) -> None:
        """Start the thread if there is work and the thread is not alive."""
        if (self._thread and self._thread.is_alive()) or not self._entries:
            return
        with self._starting:
            if self._thread and self._thread.is_alive():
                return
            name = f"redis-kit-renewals-{self.lane}"
            self._wake_ups = wake_ups = _WakeUps()  # an add() that still wakes the old one is seen in _entries
            self._thread = thread = threading.Thread(target=self._run, args=(wake_ups,), name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self._thread = None
                raise CannotRenew(
                    f"Leases can't be renewed in this process, since no thread can be started: {error}"
                ) from error

    def _run(self, wake_ups: _WakeUps) -> None:
        try:
            while self._thread is threading.current_thread():
                try:
                    self._work(wake_ups)
                except BaseException:
                    logger.exception("The renewal thread was interrupted; it continues.")
        finally:
            # Only an exception that another thread raises in this one, while it logs, leads here.
            if self._thread is threading.current_thread():
                self._thread = None
                self.revive()

    def _work(self, wake_ups: _WakeUps) -> None:
        """Run what is due, until it is interrupted or most of the heap is of items that were removed."""
        self._new.clear()
        self._heap = [(entry.when, next(self._numbers), entry) for entry in list(self._entries.values())]
        heapq.heapify(self._heap)
        while self._thread is threading.current_thread() and len(self._heap) <= 2 * len(self._entries) + MAX_STALE:
            while self._new:
                self._push(self._new.popleft())
            if not self._heap or self._heap[0][0] > monotonic():
                self._sleep(wake_ups, self._heap[0][0] if self._heap else inf)
                continue
            when, _, entry = heapq.heappop(self._heap)
            if (item := entry.item) and entry.when == when:
                self._run_entry(entry, item)
                for loop in list(_loops.values()):
                    loop.revive()

    def _push(self, entry: _Entry) -> None:
        if entry.item:
            heapq.heappush(self._heap, (entry.when, next(self._numbers), entry))

    def _sleep(self, wake_ups: _WakeUps, until: float) -> None:
        wake_ups.sleeps_until = until
        # add() reads sleeps_until after it has put its entry into _new; so one of the two sees the other.
        if not self._new:
            seconds = None if until == inf else min(max(until - monotonic(), 0.0), threading.TIMEOUT_MAX)
            with contextlib.suppress(Empty):
                wake_ups.get(timeout=seconds)
        wake_ups.sleeps_until = -inf

    def _run_entry(self, entry: _Entry, item: Work) -> None:
        try:
            after = item()
            entry.failures = 0
        except BaseException:
            logger.exception("A run of %r failed; retrying.", item)
            after = full_jitter(entry.failures, first=FIRST_RETRY, longest=LAST_RETRY)
            entry.failures += 1
        if after is None:
            if self._entries.get(item) is entry:
                self.remove(item)
        else:
            entry.when = monotonic() + after
            self._push(entry)


_loops: dict[str, Loop] = {}


os.register_at_fork(after_in_child=_loops.clear)
