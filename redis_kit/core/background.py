"""A buffer of a process, and the thread that empties it: in batches, and again after an outage."""

import threading
from logging import Logger
from math import inf
from queue import Empty
from time import monotonic, sleep
from typing import ClassVar

from redis_kit.core.errors import OutOfMemory, PermissionDenied, PoolExhausted, RedisUnavailable
from redis_kit.core.values.event_queue import EventQueue

# These errors end by themselves or by an operator, so what waits is sent again. Any other error lasts.
TEMPORARY = (RedisUnavailable, OutOfMemory, PermissionDenied, PoolExhausted)
MAX_PAUSE = 30.0  # seconds between two tries while Redis answers and refuses


class BackgroundSender:
    """The base of buffers. One thread, which starts with the first entry, calls ``flush()``.

    A subclass adds entries and calls ``_added()``. A forked child must call ``reset()``: its parent sends the parent's
    entries.
    """

    #: The name of the thread.
    name: ClassVar[str]
    logger: ClassVar[Logger]
    #: Log lines about an outage, with the capacity and the error, and about its end.
    messages: ClassVar[tuple[str, str]]
    CAPACITY = 10_000  # entries that may wait
    BATCH = 500
    INTERVAL = 1.0  # seconds that an entry waits at most
    QUIET = 0.05  # seconds without another entry after which those that wait are sent

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._sending, self._starting = threading.Lock(), threading.Lock()
        self._wake_ups: EventQueue[None] = EventQueue()  # a signal's handler may put into it at any time
        self._asleep, self._sender = False, 0  # the thread that sends now
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None  # why entries wait now
        self._pause = self.INTERVAL

    def stop(self) -> None:
        """End the thread, soon. Entries that wait go on waiting, and the next one starts another thread."""
        wake_ups, self._wake_ups = self._wake_ups, EventQueue()
        self._thread, self._asleep = None, False
        wake_ups.put(None)

    def flush(self, timeout: float | None = None) -> bool:
        """Send what waits; False if that was not possible, or not within ``timeout`` seconds. It goes on waiting."""
        deadline = inf if timeout is None else monotonic() + timeout
        sending = self._sending  # another thread may call reset()
        if not sending.acquire(timeout=-1 if timeout is None else timeout):
            return False
        try:
            self._sender = threading.get_ident()
            while self._next():
                if not self._send() or monotonic() > deadline:
                    return not self._has_work()
            self._finish()
            return True
        finally:
            self._sender = 0
            sending.release()

    def is_sender(self) -> bool:
        """Tell whether this thread sends now."""
        return threading.get_ident() == self._sender

    def _next(self) -> bool:
        """Make the next batch unless one waits; tell whether there is any."""
        raise NotImplementedError

    def _send(self) -> bool:
        """Send the batch. False if it has to wait."""
        raise NotImplementedError

    def _finish(self) -> None:
        """Do what is left when nothing waits."""

    def _count(self) -> int:
        """Return how many entries wait that are in no batch yet."""
        raise NotImplementedError

    def _has_work(self) -> bool:
        """Tell whether there is something to send."""
        raise NotImplementedError

    def _added(self) -> None:
        """Wake the thread for an entry if it sleeps or a batch is full."""
        if self._asleep or self._count() == self.BATCH:
            self._wake_ups.put(None)
        if self._thread is None:
            self._start()

    def _failed(self, error: Exception) -> None:
        """Note an error after which entries wait. Only the first of its kind is logged."""
        if type(error) is not type(self._error):
            self.logger.warning(self.messages[0], self.CAPACITY, error)
        self._error = error
        is_outage = isinstance(error, (RedisUnavailable, PoolExhausted))
        self._pause = self.INTERVAL if is_outage else min(2 * self._pause, MAX_PAUSE)

    def _recovered(self) -> None:
        if self._error:
            self._error, self._pause = None, self.INTERVAL
            self.logger.warning(self.messages[1])

    def _start(self) -> None:
        if not self._starting.acquire(blocking=False):
            return  # another caller does so
        try:
            if self._thread is None:
                self.stop()  # a thread whose start was interrupted
                self._thread = threading.Thread(target=self._run, args=[self._wake_ups], name=self.name, daemon=True)
                self._thread.start()
        except RuntimeError:
            self._thread = None  # the interpreter is about to end: an exit function sends the rest
        except BaseException:  # of a signal's handler: the next entry starts another thread
            self._thread = None
            raise
        finally:
            self._starting.release()

    def _run(self, wake_ups: EventQueue[None]) -> None:
        try:
            self._send_all(wake_ups)
        finally:  # the next entry starts another thread
            if self._thread is threading.current_thread():
                self._thread, self._asleep = None, False

    def _send_all(self, wake_ups: EventQueue[None]) -> None:
        while wake_ups is self._wake_ups:
            self._asleep = True  # before the look: an entry after it puts a wake-up
            if not self._has_work():
                wake_ups.get()
            if wake_ups is not self._wake_ups:
                return
            self._asleep = False
            self._gather(wake_ups)
            if wake_ups is self._wake_ups and not self._send_waiting():
                sleep(self._pause)

    def _send_waiting(self) -> bool:
        """Send what waits, and tell whether to go on without a pause."""
        return self.flush()

    def _gather(self, wake_ups: EventQueue[None]) -> None:
        """Wait until a batch is full, no further entry comes, or the first one has waited for ``INTERVAL``."""
        deadline, before = monotonic() + self.INTERVAL, 0
        while before < (count := self._count()) < self.BATCH and (left := deadline - monotonic()) > 0:
            before = count
            try:
                wake_ups.get(timeout=min(self.QUIET, left))
            except Empty:
                continue
