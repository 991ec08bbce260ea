"""The event loop of a worker process, on which all its asynchronous tasks run."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections

from redis_kit.queues.errors import Cancelled, TaskTimeout
from redis_kit.queues.worker.run.timeouts import JobKey

logger = logging.getLogger("redis_kit.worker")


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


def synchronous() -> Any:
    """Return the context that gives the synchronous parts of a thread's tasks one thread."""
    return ThreadSensitiveContext()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop without end. An error in a task that nobody awaits, even SystemExit, ends that task only."""
    while not loop.is_closed():
        try:
            loop.run_forever()
        except BaseException:
            logger.exception("The event loop was interrupted; it continues.")
