"""Ends tasks that take too long or are cancelled, by an exception raised inside them: in threads, or in the event loop.

Python raises it wherever the thread is, once for an attempt. Code that is taking a lock or a connection would lose it,
so the thread may leave that code first: see is_guarded().
"""

import asyncio
import contextlib
import ctypes
import logging
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from threading import Condition, Lock, Thread, get_ident
from time import monotonic
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from asgiref.sync import SyncToAsync, sync_to_async
from django.db import close_old_connections

import redis_kit
from redis_kit.queues.errors import Cancelled, TaskTimeout

Result = TypeVar("Result")
logger = logging.getLogger("redis_kit.worker")
JobKey = tuple[int, str]  # the number of a job's queue, and its id
PAUSE = 0.001  # seconds until the next look at a thread that was within that code
PATIENCE = 0.2  # seconds to let code of redis_kit finish; if it only waits, it is interrupted after that
THREADING = threading.Thread.run.__code__.co_filename
LOCKING = {logging.Handler.handle.__code__.co_filename, contextlib.contextmanager.__code__.co_filename}
TAKING = {"__enter__", "__exit__", "_acquire_restore", "_release_save", "acquire", "release"}  # of threading


class _Limit(NamedTuple):
    end: float
    job: JobKey
    error: type[BaseException] = TaskTimeout


class Timeouts:
    """Raises TaskTimeout in a thread whose time is up. One that waits in C code gets it when that returns."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._limits: dict[int, _Limit] = {}
        self._looks_at = inf  # when run() looks next, unless it is woken
        self._stopped = False

    def run(self) -> None:
        """Watch the deadlines until stopped."""
        with self._lock:
            while not self._stopped:
                self._looks_at = self._end_due()
                self._changed.wait(None if self._looks_at == inf else max(0.0, self._looks_at - monotonic()))

    def stop(self) -> None:
        """Stop watching."""
        with self._lock:
            self._stopped = True
            self._changed.notify()

    def cancel(self, job: JobKey) -> bool:
        """Raise Cancelled in the thread that runs this job, and say whether there was one."""
        with self._lock:
            limits = {thread: limit for thread, limit in self._limits.items() if limit.job == job}
            for thread, limit in limits.items():
                self._limits[thread] = limit._replace(end=min(limit.end, monotonic()), error=Cancelled)
            self._changed.notify()
        return bool(limits)

    def run_within(self, job: JobKey, seconds: float | None, work: Callable[..., Result], *args: Any) -> Result:
        """Return what a job's work returns, called with these arguments. It has this many seconds; None: no limit."""
        thread, end = get_ident(), inf if seconds is None else monotonic() + seconds
        with self._lock:
            self._limits[thread] = _Limit(end, job)
            if end < self._looks_at:
                self._changed.notify()
        try:
            return work(*args)
        finally:
            with self._lock:
                struck = self._limits.pop(thread, None) is None
            if struck:
                _settle(thread)

    def _end_due(self) -> float:
        """End what is due; return the moment at which there is more to do. Needs the lock."""
        now = monotonic()
        for thread, limit in list(self._limits.items()):
            if limit.end > now:
                continue
            # Where the thread is now is where the error would be raised: until this one waits, no other runs.
            frame = sys._current_frames().get(thread)
            if frame is None or not is_guarded(frame, late=now - limit.end):
                del self._limits[thread]
                _raise_in(thread, limit.error)
        return max(now + PAUSE, min((limit.end for limit in self._limits.values()), default=inf))


def is_guarded(frame: FrameType, *, late: float = 0.0) -> bool:
    """Say whether an error must not be raised in this frame."""
    code = frame.f_code
    if code.co_filename == THREADING:
        return code.co_name in TAKING
    if code.co_filename in LOCKING or (late < PATIENCE and code.co_filename.startswith(KIT)):
        return True
    return any(caller.f_code.co_name == "__del__" for caller in _callers(frame))  # Python ignores what comes out of it


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame:
        yield frame
        frame = frame.f_back


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


class _Settled(BaseException):
    """Takes the place of an error that may still be on its way to this thread, and must not reach its next job.

    To take it back would not do: Python 3.11 would look for it for ever, at each call in each thread.
    """


def _settle(thread: int) -> None:
    with contextlib.suppress(_Settled):
        _raise_in(thread, _Settled)
        for _ in range(2):  # where it did not come with the end of that call
            pass


KIT = f"{Path(redis_kit.__file__).parent}/"


class EventLoop:
    """One loop in a thread of its own, begun with the first asynchronous task.

    Clients that belong to a loop live as long as the worker. The thread that has the job waits. Code that a task calls
    through ``sync_to_async``, such as database queries, runs in one more thread per thread of the worker.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: dict[JobKey, asyncio.Task[Any]] = {}
        self._cancelled: set[JobKey] = set()

    def run(self, job: JobKey, work: Callable[[], Awaitable[Any]], *, timeout: float | None, sync: Any) -> Any:
        """Run a coroutine and return its result. Raises TaskTimeout and Cancelled beside what it raises."""
        ended = asyncio.run_coroutine_threadsafe(self._run(job, work, timeout, sync), self._started())
        result, error = ended.result()
        if error is not None:
            raise error
        return result

    def cancel(self, job: JobKey) -> None:
        """Cancel the coroutine of a job, if it runs here, and once."""
        if self._loop:
            self._loop.call_soon_threadsafe(self._cancel, job)

    def _cancel(self, job: JobKey) -> None:
        if (task := self._tasks.get(job)) and job not in self._cancelled:
            self._cancelled.add(job)
            task.cancel()

    async def _run(
        self, job: JobKey, work: Callable[[], Awaitable[Any]], timeout: float | None, sync: Any
    ) -> tuple[Any, BaseException | None]:
        # Returns the error: asyncio would raise SystemExit and KeyboardInterrupt in the loop, for all its tasks.
        self._tasks[job] = asyncio.current_task()  # type: ignore[assignment]
        SyncToAsync.thread_sensitive_context.set(sync)
        try:
            return await self._limited(job, work, timeout), None
        except BaseException as error:
            return None, error
        finally:
            self._tasks.pop(job, None)
            self._cancelled.discard(job)
            if sync in SyncToAsync.context_to_thread_executor:
                with suppress(BaseException):
                    await sync_to_async(close_old_connections)()

    async def _limited(self, job: JobKey, work: Callable[[], Awaitable[Any]], timeout: float | None) -> Any:
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await work()
        except TimeoutError as error:
            if limit.expired():
                raise TaskTimeout from error
            raise
        except asyncio.CancelledError as error:
            if job in self._cancelled:
                raise Cancelled from error
            raise
        finally:
            del limit  # it refers to asyncio's task, that one to the error, and the error to this frame: a circle

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                Thread(target=_serve, args=(self._loop,), name="redis-kit-loop", daemon=True).start()
        return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop without end. An error in a task that nobody awaits, even SystemExit, ends that task only."""
    while not loop.is_closed():
        try:
            loop.run_forever()
        except BaseException:
            logger.exception("The event loop was interrupted; it continues.")
