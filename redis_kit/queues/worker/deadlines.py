"""Ends tasks that take too long, by an exception raised inside them."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, get_ident
from time import monotonic

from redis_kit.queues.tasks import TaskTimeout
from redis_kit.queues.worker.alarm import Alarm


class Deadlines:
    """Raises TaskTimeout in a thread whose time is up. One that waits in C code gets it when that returns."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ends: dict[int, float] = {}
        self._alarm, self._stop = Alarm(), Event()

    def run(self) -> None:
        """Watch the deadlines until stopped."""
        while not self._stop.is_set():
            self._alarm.wait()
            with self._lock:
                now = monotonic()
                for thread, _ in [item for item in self._ends.items() if item[1] <= now]:
                    del self._ends[thread]
                    _raise_in(thread, TaskTimeout)
                left = min(self._ends.values(), default=None)
            if left is not None:
                self._alarm.set(left - now)

    def stop(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._alarm.set(0)

    @contextmanager
    def limit(self, seconds: float | None) -> Iterator[None]:
        """Give the block in this thread so many seconds; None for ever."""
        if seconds is None:
            yield
            return
        thread = get_ident()
        with self._lock:
            self._ends[thread] = monotonic() + seconds
        self._alarm.set(seconds)
        try:
            yield
        finally:
            with self._lock:
                over = self._ends.pop(thread, None) is None
            if over:
                _raise_in(thread, None)  # it may still be on its way, and must not reach the next job


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    target = ctypes.py_object(error) if error else ctypes.py_object()
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), target)
