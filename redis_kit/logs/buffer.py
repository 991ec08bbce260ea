"""The buffer of a process: log records that wait, and the thread that stores them."""

import logging
import os
import threading
from collections import deque
from itertools import count
from queue import SimpleQueue
from secrets import token_hex
from time import monotonic, sleep
from typing import NamedTuple

from redis_kit.core import conf, connections, flow
from redis_kit.core.errors import OutOfMemory, PermissionDenied, PoolExhausted, RedisUnavailable
from redis_kit.core.logs.error_text import described
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.web.lifespan import on_shutdown
from redis_kit.logs.batch import MEMORY, calls_of
from redis_kit.logs.record import Entry
from redis_kit.logs.settings import LogSettings

logger = logging.getLogger("redis_kit.logs")

CAPACITY = 10_000
BATCH = 1000
INTERVAL = 0.5  # seconds that a record waits at most
QUIET = 0.05  # seconds without another record after which those that wait are sent
MAX_PAUSE = 30.0  # seconds between two tries while Redis answers and refuses
CLOSING = 2.0  # seconds
# These errors end by themselves or by an operator, so records wait.
TEMPORARY = (RedisUnavailable, OutOfMemory, PermissionDenied, PoolExhausted)


class Counts(NamedTuple):
    """The log records of this process since it started."""

    stored: int
    dropped: int
    waiting: int


class Buffer:
    """A list with a limit. Callers append to it without a lock; one thread, which the first record starts, empties it.

    Appends of a deque, and the numbers of a count, are atomic. A lock could be held by the code that a signal
    interrupts, and then its handler could not log.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything. A forked child must do this: its parent sends the parent's records."""
        self._entries: deque[Entry] = deque()
        self._calls: deque[tuple[ScriptCall, int, int]] = deque()  # with the numbers of records and of reported drops
        self._overflow, self._looks = count(), count()
        self._sending, self._starting = threading.Lock(), threading.Lock()
        self._wake_ups: SimpleQueue[None] = SimpleQueue()
        self._asleep = False
        self._thread: threading.Thread | None = None
        self._sender = 0
        self._writer, self._number = token_hex(6), 0
        self._stored = self._failed = self._reported = 0
        self._error, self._pause, self._tried = "", INTERVAL, 0.0

    def discard(self) -> None:
        """Forget the records that wait, and the dropped ones that are not reported yet."""
        with self._sending:
            self._entries.clear()
            self._calls.clear()
            self._reported = self._dropped()

    def add(self, entry: Entry) -> None:
        """Add a record, or drop and count it if 10,000 wait. Never waits."""
        if len(self._entries) >= CAPACITY:
            next(self._overflow)
        else:
            self._entries.append(entry)
        if self._asleep:
            self._wake_ups.put(None)
        elif self._thread is None:
            self._start()

    def drop(self) -> None:
        """Count a record that could not be read."""
        next(self._overflow)

    def is_sender(self) -> bool:
        """Tell whether this thread sends records now: what it logs is not stored, or there would be no end."""
        return threading.get_ident() == self._sender

    def counts(self) -> Counts:
        """Return the numbers of records. They are exact while nothing is logged or sent."""
        with self._sending:
            return Counts(self._stored, self._dropped(), self._waiting())

    def flush(self, timeout: float = CLOSING) -> bool:
        """Store all waiting records now, and return whether that was possible in time. Otherwise they go on waiting."""
        deadline = monotonic() + timeout
        if not (self._waiting() or self._sending.locked()):
            return True  # and the client library need not be loaded
        if not self._sending.acquire(timeout=timeout):
            return False
        try:
            self._sender = threading.get_ident()
            while self._next():
                if not self._send() or monotonic() > deadline:
                    return not self._waiting()
            return True
        finally:
            self._sender = 0
            self._sending.release()

    def _waiting(self) -> int:
        return len(self._entries) + sum(records for _, records, _ in self._calls)

    def _dropped(self) -> int:
        return self._failed + next(self._overflow) - next(self._looks)  # each look takes a number of the other, too

    def _next(self) -> bool:
        """Make the next batch unless one waits; tell whether there is any."""
        dropped = self._dropped() - self._reported
        if not self._calls and (self._entries or dropped):
            entries = [self._entries.popleft() for _ in range(min(len(self._entries), BATCH))]
            try:
                calls = list(calls_of(entries, dropped, writer=self._writer, number=self._number + 1))
            except Exception as error:  # such as one of the settings
                self._failed += len(entries)
                self._note(error)
                return False
            self._calls.extend((call, records, 0 if at else dropped) for at, (call, records) in enumerate(calls))
            self._number += len(calls)
            self._reported += dropped
        return bool(self._calls)

    def _send(self) -> bool:
        call, records, dropped = self._calls[0]
        try:
            flow.run(flow.single(call), connections.client(conf.section(LogSettings).USING, "worker"))
        except Exception as error:
            self._note(error)
            if isinstance(error, TEMPORARY) and not (self._tried and monotonic() - self._tried > MEMORY / 2):
                if getattr(error, "indeterminate", False):
                    self._tried = self._tried or monotonic()
                return False
            self._calls.popleft()
            self._failed += records
            self._reported -= dropped
            self._tried = 0.0
            return False
        self._calls.popleft()
        self._stored += records
        self._tried = 0.0
        if self._error:
            self._error, self._pause = "", INTERVAL
            logger.warning("Log records are stored again.")
        return True

    def _note(self, error: Exception) -> None:
        refused = not isinstance(error, RedisUnavailable)
        self._pause = min(2 * self._pause, MAX_PAUSE) if refused else INTERVAL
        if type(error).__name__ != self._error:
            self._error = type(error).__name__
            text = "Can't store log records; up to %d wait, and further ones are dropped: %s"
            logger.warning(text, CAPACITY, described(error))

    def _start(self) -> None:
        if not self._starting.acquire(blocking=False):
            return
        try:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="redis-kit-logs", daemon=True)
                self._thread.start()
        except RuntimeError:
            self._thread = None  # the interpreter is about to end: logging.shutdown() stores the rest
        finally:
            self._starting.release()

    def _run(self) -> None:
        entries = self._entries
        try:
            while entries is self._entries:  # else reset() has run since
                self._asleep = True
                if not entries:
                    self._wake_ups.get()
                self._asleep = False
                self._gather()
                while not self.flush():
                    sleep(self._pause if self._error else 0)
        finally:  # the next record starts another thread
            if self._thread is threading.current_thread():
                self._thread, self._asleep = None, False

    def _gather(self) -> None:
        """Wait until a batch is full, no further record comes, or the first one has waited for ``INTERVAL``."""
        deadline, before = monotonic() + INTERVAL, 0
        while before < (waiting := len(self._entries)) < BATCH and monotonic() < deadline:
            before = waiting
            sleep(QUIET)


buffer = Buffer()
os.register_at_fork(after_in_child=buffer.reset)
on_shutdown(buffer.flush)
counts, flush = buffer.counts, buffer.flush
