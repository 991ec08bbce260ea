"""Ends tasks that take too long or are cancelled, by an exception raised inside them."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from threading import Event, Lock, get_ident
from time import monotonic
from typing import NamedTuple

from redis_kit.queues.tasks import Cancelled, TaskTimeout
from redis_kit.queues.worker.alarm import Alarm


class _Running(NamedTuple):
    end: float
    job: str


class Deadlines:
    """Raises TaskTimeout in a thread whose time is up. One that waits in C code gets it when that returns."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: dict[int, _Running] = {}
        self._alarm, self._stop = Alarm(), Event()

    def run(self) -> None:
        """Watch the deadlines until stopped."""
        while not self._stop.is_set():
            self._alarm.wait()
            self._end(TaskTimeout, lambda running: running.end <= monotonic())
            with self._lock:
                first = min((running.end for running in self._running.values()), default=inf)
            if first < inf:
                self._alarm.set(first - monotonic())

    def stop(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._alarm.set(0)

    def cancel(self, job: str) -> bool:
        """Raise Cancelled in the thread that runs this job, and say whether there was one."""
        return self._end(Cancelled, lambda running: running.job == job)

    @contextmanager
    def limit(self, job: str, seconds: float | None) -> Iterator[None]:
        """Give the block in this thread so many seconds; None for ever."""
        thread = get_ident()
        with self._lock:
            self._running[thread] = _Running(inf if seconds is None else monotonic() + seconds, job)
        if seconds is not None:
            self._alarm.set(seconds)
        try:
            yield
        finally:
            with self._lock:
                over = self._running.pop(thread, None) is None
            if over:
                _raise_in(thread, None)  # it may still be on its way, and must not reach the next job

    def _end(self, error: type[BaseException], chosen: Callable[[_Running], bool]) -> bool:
        with self._lock:
            threads = [thread for thread, running in self._running.items() if chosen(running)]
            for thread in threads:
                del self._running[thread]
                _raise_in(thread, error)
        return bool(threads)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    target = ctypes.py_object(error) if error else ctypes.py_object()
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), target)
