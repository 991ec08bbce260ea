"""The buffer of a process: log records that wait, and the thread that stores them."""

import logging
import os
from collections import deque
from functools import partial
from itertools import count
from secrets import token_hex
from time import monotonic

from redis_kit.core import conf, connections, flow
from redis_kit.core.background import TEMPORARY, BackgroundSender
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.web.lifespan import on_shutdown
from redis_kit.logs.batch import MEMORY, calls_of
from redis_kit.logs.record import Entry
from redis_kit.logs.settings import LogSettings


class Buffer(BackgroundSender):
    """A list with a limit. Callers append to it without a lock; one thread, which the first record starts, empties it.

    Appends of a deque, and the numbers of a count, are atomic. A lock could be held by the code that a signal
    interrupts, and then its handler could not log.
    """

    name, logger = "redis-kit-logs", logging.getLogger("redis_kit.logs")
    messages = "Can't store log records; up to %d wait: %s", "Log records are stored again."
    BATCH, INTERVAL = 1000, 0.5

    def reset(self) -> None:
        """Forget everything. A forked child must do this: its parent stores the parent's records."""
        super().reset()
        self._entries: deque[Entry] = deque()
        self._batches: deque[tuple[ScriptCall, int, int]] = deque()  # with its records, and the drops that it reports
        self._overflow = count()
        self._writer, self._number = token_hex(6), 0
        self.stored = self._refused = self._reported = 0
        self._tried = 0.0  # when the first batch may have been stored

    def discard(self) -> None:
        """Forget the records that wait, and the dropped ones that are not reported yet."""
        with self._sending:
            self._entries.clear()
            self._batches.clear()
            self._reported = self.dropped()

    def add(self, entry: Entry) -> None:
        """Add a record, or drop and count it if 10,000 wait. Never waits."""
        if len(self._entries) >= self.CAPACITY:
            self.drop()
        else:
            self._entries.append(entry)
            self._added()

    def drop(self) -> None:
        """Count a record that is not stored. The thread reports it."""
        next(self._overflow)
        self._added()

    def dropped(self) -> int:
        """Return how many records were dropped since the process started."""
        # Only repr() looks at a count without a step, and another thread may drop a record at the same time.
        return self._refused + int(repr(self._overflow)[len("count(") : -1])

    def waiting(self) -> int:
        """Return how many records wait."""
        return len(self._entries) + sum(records for _, records, _ in self._batches)

    def flush(self, timeout: float | None = None) -> bool:
        """Store all records that wait. False if they go on waiting, or were refused."""
        return super().flush(timeout) and self._error is None

    def _count(self) -> int:
        return len(self._entries)

    def _has_work(self) -> bool:
        return bool(self._entries or self._batches) or self.dropped() != self._reported

    def _next(self) -> bool:
        """Make the next batches unless one waits; tell whether there is any."""
        dropped = self.dropped() - self._reported
        if not self._batches and (self._entries or dropped):
            entries = [self._entries.popleft() for _ in range(min(len(self._entries), self.BATCH))]
            try:
                calls = calls_of(entries, dropped, writer=self._writer, number=self._number + 1)
            except Exception as error:  # such as one of the settings
                self._refused += len(entries)
                self._failed(error)
                return False
            self._batches.extend(calls)
            self._number += len(calls)
            self._reported += dropped
        return bool(self._batches)

    def _send(self) -> bool:
        call, records, dropped = self._batches[0]
        try:
            flow.run(flow.single(call), connections.client(conf.section(LogSettings).USING, "worker"))
        except Exception as error:
            self._failed(error)
            if isinstance(error, TEMPORARY) and not (self._tried and monotonic() - self._tried > MEMORY / 2):
                if getattr(error, "indeterminate", False):
                    self._tried = self._tried or monotonic()
                return False
            self._refused += records
            self._reported -= dropped
        else:
            self.stored += records
            self._recovered()
        self._batches.popleft()
        self._tried = 0.0
        return self._error is None


buffer = Buffer()
os.register_at_fork(after_in_child=buffer.reset)
on_shutdown(partial(buffer.flush, 2.0))
