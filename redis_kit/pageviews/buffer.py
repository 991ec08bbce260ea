"""The buffer of a process: views that wait to be counted, and the thread that counts them."""

import asyncio
import atexit
import logging
import os
import threading
from secrets import token_hex
from time import monotonic
from typing import NamedTuple

from redis_kit.core import conf, connections, flow
from redis_kit.core.background import TEMPORARY, BackgroundSender
from redis_kit.core.errors import ConfigurationError, RedisUnavailable
from redis_kit.core.web.lifespan import on_shutdown
from redis_kit.pageviews.batch import MEMORY, Event, ViewBatch, dropped_today, log_once
from redis_kit.pageviews.settings import PageViewSettings

logger = logging.getLogger("redis_kit.pageviews")

# After this time a batch isn't sent again, since the server may have forgotten that it has it.
MAX_RETRY_TIME = MEMORY / 2


class Dropped(NamedTuple):
    """Views that this process did not count, by reason."""

    overflow: int  # the buffer was full
    outage: int  # Redis was unavailable, full or denied access: for too long, or at all with WRITE = "sync"
    refused: int  # Redis refused them for good for their page, object or site, for example a key of another type
    failed: int  # an error of this process, logged


class Buffer(BackgroundSender):
    """A list with a limit. Requests append to it; one thread, which starts with the first event, empties it."""

    name, logger = "redis-kit-pageviews", logger
    messages = (
        "Can't count page views; up to %d wait and are sent again: %s",
        "Page views are counted again.",
    )

    def reset(self) -> None:
        """Forget everything. A forked child must do this: its parent counts the parent's events."""
        super().reset()
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._batch: ViewBatch | None = None
        self._writer, self._number = token_hex(6), 0
        self._dropped, self._reported = dict.fromkeys(Dropped._fields, 0), 0

    def discard(self) -> None:
        """Drop the views that wait, without counting them as dropped. A batch on its way is sent first.

        Drops that are not reported yet never are.
        """
        with self._sending, self._lock:
            self._events.clear()
            self._batch = self._error = None
            self._reported = sum(self._dropped.values())

    @property
    def waiting(self) -> int:
        """Return how many views wait."""
        return len(self._events) + (len(self._batch.events) if self._batch else 0)

    def record(self, event: Event) -> bool:
        """Add an event, or drop it and count that if 10,000 are waiting. Never waits for the server."""
        with self._lock:
            if self.waiting >= self.CAPACITY:
                self._dropped["overflow"] += views([event])
                return False
            self._events.append(event)
            self._added()
        return True

    def drop(self, reason: str, count: int = 1) -> None:
        """Add to the number of dropped views, which the thread reports."""
        if not count:
            return
        with self._lock:
            self._dropped[reason] += count
            self._added()

    def dropped(self) -> Dropped:
        """Return how many views this process did not count since it started."""
        with self._lock:
            return Dropped(**self._dropped)

    def flush(self, timeout: float | None = None) -> bool:
        """Count all waiting views now. One round trip for 500 views.

        Return False if views still wait because Redis is unavailable, full or denies access. They are sent again later.
        """
        return super().flush(timeout)

    def _send(self) -> bool:
        if (batch := self._batch) is None:
            return True
        try:
            refused = flow.run(batch.send(), connections.client(batch.using, "worker"))
        except TEMPORARY as error:
            self._failed(error)
            if batch.tried is not None and monotonic() - batch.tried > MAX_RETRY_TIME:
                self.drop("outage", views(batch.events))
                self._done()
            return False
        except Exception as error:
            log_once(error, "Page views were dropped: %s")
            self.drop("failed", views(batch.events))
        else:
            self.drop("refused", refused)
            self._recovered()
        self._done()
        return True

    def _finish(self) -> None:
        """Add the views that this process dropped since the last report to the day's number in Redis.

        A report whose reply is lost isn't sent again, so the number is never too high.
        """
        with self._lock:
            total = sum(self._dropped.values())
            count, self._reported = total - self._reported, total
        if not count:
            return
        try:
            flow.run(dropped_today(count), connections.client(conf.section(PageViewSettings).USING, "worker"))
        except TEMPORARY as error:
            if not (isinstance(error, RedisUnavailable) and error.indeterminate):
                with self._lock:
                    self._reported -= count
        except Exception as error:
            log_once(error, "Dropped page views could not be reported: %s")

    async def aflush(self, timeout: float | None = None) -> bool:
        """See flush(). Runs in a thread, since all event loops of the process share the buffer."""
        return await asyncio.to_thread(self.flush, timeout)

    def _next(self) -> bool:
        with self._lock:
            if self._batch is None and self._events:
                using = conf.section(PageViewSettings).USING
                events, self._events = self._events[: self.BATCH], self._events[self.BATCH :]
                self._number += 1
                self._batch = ViewBatch(events, using=using, writer=self._writer, number=self._number)
            return self._batch is not None

    def _done(self) -> None:
        with self._lock:
            self._batch = None

    def _count(self) -> int:
        return len(self._events)

    def _has_work(self) -> bool:
        return bool(self.waiting) or not self._is_reported()

    def _send_waiting(self) -> bool:
        try:
            return self.flush() and self._is_reported()
        except Exception as error:
            log_once(error, "Page views could not be counted: %s")
            return False

    def _is_reported(self) -> bool:
        with self._lock:
            return self._reported == sum(self._dropped.values())

    def close(self) -> None:
        """Count the rest when the process ends. Waits at most 2 seconds for a server that does not answer."""
        try:
            if self.flush():
                return
        except ConfigurationError as error:  # the end of a process has no caller to catch it
            self._error = error
        logger.warning("%d page views are lost with this process: %s", self.waiting, self._error)


def views(events: list[Event]) -> int:
    """Return how many of the events are views, and not requests of bots."""
    return sum(not event.bot for event in events)


buffer = Buffer()
record, flush, aflush, dropped = buffer.record, buffer.flush, buffer.aflush, buffer.dropped
os.register_at_fork(after_in_child=buffer.reset)
atexit.register(buffer.close)
on_shutdown(buffer.close)
