"""What must be done again and again, such as renewing leases: one daemon thread for all things of one lane.

A lane is a connection's alias: while its server is away and every beat waits for a time limit, the beats of other lanes
are on time. The lane ``CLOCK`` is for beats that wait for nothing, such as those which watch a deadline.
"""

import contextlib
import heapq
import itertools
import logging
import os
import threading
from collections import deque
from math import inf
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Protocol

from redis_kit.core.client.backoff import full_jitter
from redis_kit.locks.errors import CannotRenew

logger = logging.getLogger("redis_kit.locks")

CLOCK, CALLS = "(clock)", "(on_lost)"
CROWD = 1000  # entries without an item, at most, that wait to be dropped
SOON, LATEST = 0.1, 5.0  # seconds within which a failed beat is tried again: at first, and after many failures


class Item(Protocol):
    """Something to be done again and again. Told apart by identity; may be asked once more than needed."""

    def beat(self) -> float | None:
        """Do it once; return the seconds until the next time, None to stop."""


def add(item: Item, *, after: float = 0.0, lane: str = "default") -> None:
    """Let an item beat ``after`` some seconds and then as often as it says; one that is there already starts anew.

    Raises CannotRenew where its thread can't be started; the item is not kept then. No round trip, and no wait.
    """
    found = _loops.get(lane)
    if found is None:
        found = _loops.setdefault(lane, Loop(lane))
    found.add(item, after)


def remove(item: Item) -> None:
    """Let an item beat no more. A beat that is under way goes on to its end."""
    for loop in list(_loops.values()):
        loop.remove(item)


class _Entry:
    """An item's place in a loop."""

    __slots__ = ("failures", "item", "when")

    def __init__(self, item: Item, when: float) -> None:
        self.item: Item | None = item
        self.when, self.failures = when, 0


class Loop:
    """One lane's thread, which sleeps until the next beat is due.

    Nothing in it is guarded by a lock that an asynchronous exception in its thread, or a signal handler in another one,
    could leave locked: ``_entries`` says what there is to do, and the thread builds its heap from it.
    """

    def __init__(self, lane: str) -> None:
        self.lane = lane
        self._entries: dict[Item, _Entry] = {}
        self._fresh: deque[_Entry] = deque()
        self._heap: list[tuple[float, int, _Entry]] = []
        self._numbers = itertools.count()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._wakes = -inf  # until when the thread sleeps, so that only what is due earlier wakes it
        self._starting = threading.RLock()
        self._thread: threading.Thread | None = None

    def add(self, item: Item, after: float) -> None:
        """See add()."""
        self.remove(item)
        self._entries[item] = entry = _Entry(item, monotonic() + after)
        self._fresh.append(entry)
        try:
            self.revive()
        except BaseException:
            self.remove(item)
            raise
        if entry.when < self._wakes or len(self._fresh) > CROWD:
            self._bell.put(None)

    def remove(self, item: Item) -> None:
        """See remove()."""
        if entry := self._entries.pop(item, None):
            entry.item = None  # what is left of it in the heap holds nothing

    def revive(self) -> None:
        """Start the thread, if there is something to do and it is not alive."""
        if (self._thread and self._thread.is_alive()) or not self._entries:
            return
        with self._starting:
            if self._thread and self._thread.is_alive():
                return
            name = f"redis-kit-renewals-{self.lane}"
            self._thread = thread = threading.Thread(target=self._run, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self._thread = None
                raise CannotRenew(f"Nothing can be renewed here, the thread for it does not start: {error}") from error

    def _run(self) -> None:
        try:
            while self._thread is threading.current_thread():
                try:
                    self._work()
                except BaseException:
                    logger.exception("The renewal thread was disturbed and goes on.")
        finally:
            # Only an exception that another thread raises in this one, while it logs one, leads here.
            if self._thread is threading.current_thread():
                self._thread = None
                self.revive()

    def _work(self) -> None:
        """Beat for as long as nothing disturbs, or until most of the heap is of items that were removed."""
        self._fresh.clear()
        self._heap = [(entry.when, next(self._numbers), entry) for entry in list(self._entries.values())]
        heapq.heapify(self._heap)
        while self._thread is threading.current_thread() and len(self._heap) <= 2 * len(self._entries) + CROWD:
            while self._fresh:
                self._push(self._fresh.popleft())
            if not self._heap or self._heap[0][0] > monotonic():
                self._sleep(self._heap[0][0] if self._heap else inf)
                continue
            when, _, entry = heapq.heappop(self._heap)
            if (item := entry.item) and entry.when == when:
                self._beat(entry, item)
                _revive_others()

    def _push(self, entry: _Entry) -> None:
        if entry.item:
            heapq.heappush(self._heap, (entry.when, next(self._numbers), entry))

    def _sleep(self, until: float) -> None:
        self._wakes = until
        # Whoever adds looks at _wakes after it has put its entry into _fresh; so one of the two sees the other.
        if not self._fresh:
            wait = None if until == inf else min(max(until - monotonic(), 0.0), threading.TIMEOUT_MAX)
            with contextlib.suppress(Empty):
                self._bell.get(timeout=wait)
        self._wakes = -inf

    def _beat(self, entry: _Entry, item: Item) -> None:
        try:
            after = item.beat()
            entry.failures = 0
        except BaseException:
            logger.exception("A beat of %r failed; it is tried again.", item)
            after = full_jitter(entry.failures, first=SOON, longest=LATEST)
            entry.failures += 1
        if after is None:
            if self._entries.get(item) is entry:
                self.remove(item)
        else:
            entry.when = monotonic() + after
            self._push(entry)


_loops: dict[str, Loop] = {}


def _revive_others() -> None:
    for loop in list(_loops.values()):
        loop.revive()


def _forget() -> None:
    _loops.clear()


os.register_at_fork(after_in_child=_forget)
