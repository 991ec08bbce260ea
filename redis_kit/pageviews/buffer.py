"""Events of this process that wait to be counted, and the thread that counts them."""

import asyncio
import atexit
import logging
import os
import threading
from secrets import token_hex
from time import monotonic
from typing import NamedTuple

from redis_kit.core import conf, connections, flow
from redis_kit.core.errors import OutOfMemory, RedisUnavailable
from redis_kit.pageviews.component import PageViewSettings
from redis_kit.pageviews.counting import MEMORY, Counting, Event

logger = logging.getLogger("redis_kit.pageviews")

CAPACITY = 10_000
BATCH = 500
INTERVAL = 1.0  # seconds
# After this time a batch isn't tried again, since the server is about to forget whether it has it.
GIVE_UP = MEMORY / 2


class Dropped(NamedTuple):
    """Views that this process did not count, by reason."""

    overflow: int  # the buffer was full
    outage: int  # Redis was away for too long, or at all with WRITE = "sync"
    refused: int  # Redis refused a page's script, as for a key of another type; one for each page, object and site
    failed: int  # an error of this process, logged


class Buffer:
    """A list with a limit, written by requests and emptied by one thread, which starts with the first event."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything, as a forked child must: what its parent holds, its parent counts."""
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._some, self._full, self._never = threading.Event(), threading.Event(), threading.Event()
        self._events: list[Event] = []
        self._counting: Counting | None = None
        self._since = 0.0
        self._is_down = False
        self._thread: threading.Thread | None = None
        self._writer, self._number = token_hex(6), 0
        self._dropped = dict.fromkeys(Dropped._fields, 0)

    def record(self, event: Event) -> bool:
        """Take an event, or drop it and count that when 10,000 are waiting. Never waits for the server."""
        with self._lock:
            waiting = len(self._events) + (len(self._counting.events) if self._counting else 0)
            if waiting >= CAPACITY:
                self._dropped["overflow"] += 1
                return False
            self._events.append(event)
            count = len(self._events)
            if self._thread is None:
                self._start()
        if count == 1:
            self._some.set()
        elif count == BATCH:
            self._full.set()
        return True

    def drop(self, reason: str, count: int = 1) -> None:
        """Count views that are not counted."""
        with self._lock:
            self._dropped[reason] += count

    def dropped(self) -> Dropped:
        """Return how many views this process did not count since it started."""
        with self._lock:
            return Dropped(**self._dropped)

    def flush(self) -> bool:
        """Count everything that waits, now; False when Redis is away, and then it is kept. One round trip per 500."""
        with self._sending:
            while counting := self._next():
                try:
                    refused = flow.run(counting.send(), connections.client(counting.using, "worker"))
                except (RedisUnavailable, OutOfMemory) as error:
                    self._failed(counting, error)
                    return False
                except Exception:
                    logger.exception("%d page views were dropped.", len(counting.events))
                    self.drop("failed", len(counting.events))
                else:
                    self.drop("refused", refused)
                    self._recovered()
                self._done()
            return True

    async def aflush(self) -> bool:
        """See flush(). Runs in a thread, as the buffer is the whole process's."""
        return await asyncio.to_thread(self.flush)

    def _next(self) -> Counting | None:
        with self._lock:
            if self._counting is None and self._events:
                events, self._events = self._events[:BATCH], self._events[BATCH:]
                self._number += 1
                using = conf.section(PageViewSettings).USING
                self._counting = Counting(events, using=using, writer=self._writer, number=self._number)
                self._since = monotonic()
            return self._counting

    def _done(self) -> None:
        with self._lock:
            self._counting = None

    def _failed(self, counting: Counting, error: Exception) -> None:
        if not self._is_down:
            self._is_down = True
            logger.warning("Page views wait until Redis answers, %d at most: %s", CAPACITY, error)
        if monotonic() - self._since > GIVE_UP:
            self.drop("outage", len(counting.events))
            self._done()

    def _recovered(self) -> None:
        if self._is_down:
            self._is_down = False
            logger.warning("Page views are counted again.")

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="redis-kit-pageviews", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return  # the interpreter is about to end: close() counts what is left
        self._thread = thread

    def _run(self) -> None:
        some, full, never = self._some, self._full, self._never
        while True:
            some.wait()
            full.wait(INTERVAL)
            some.clear()
            full.clear()
            try:
                all_counted = self.flush()
            except Exception:
                logger.exception("Page views could not be counted.")
                all_counted = False
            if not all_counted:
                never.wait(INTERVAL)
                some.set()

    def close(self) -> None:
        """Count what is left when the process ends; waits for 2 seconds at most for a server that does not answer."""
        if not self.flush():
            waiting = len(self._events) + (len(self._counting.events) if self._counting else 0)
            logger.warning("%d page views are lost: Redis is away.", waiting)


buffer = Buffer()
record, flush, aflush, dropped = buffer.record, buffer.flush, buffer.aflush, buffer.dropped
os.register_at_fork(after_in_child=buffer.reset)
atexit.register(buffer.close)
