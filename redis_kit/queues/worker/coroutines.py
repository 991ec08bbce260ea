"""The event loop of a worker process, on which all its asynchronous tasks run."""

import asyncio
from collections.abc import Awaitable, Callable
from threading import Lock, Thread
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections

from redis_kit.queues.tasks import Cancelled, TaskTimeout


class Coroutines:
    """One loop in a thread of its own, begun with the first asynchronous task.

    Clients that belong to a loop live as long as the worker does. The thread that has the job waits. What a task calls
    through ``sync_to_async``, the database among it, runs in one more thread for each that has such jobs.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._cancelled: set[str] = set()

    def run(self, job: str, work: Callable[[], Awaitable[Any]], *, timeout: float | None, sync: Any) -> Any:
        """Run a coroutine and return its result. Raises TaskTimeout and Cancelled beside what it raises."""
        return asyncio.run_coroutine_threadsafe(self._run(job, work, timeout, sync), self._started()).result()

    def cancel(self, job: str) -> bool:
        """Cancel the coroutine of a job, and say whether there was one."""
        task = self._tasks.get(job)
        if task is None or self._loop is None:
            return False
        self._cancelled.add(job)
        self._loop.call_soon_threadsafe(task.cancel)
        return True

    async def _run(self, job: str, work: Callable[[], Awaitable[Any]], timeout: float | None, sync: Any) -> Any:
        self._tasks[job] = asyncio.current_task()  # type: ignore[assignment]
        SyncToAsync.thread_sensitive_context.set(sync)
        try:
            async with asyncio.timeout(timeout) as limit:
                return await work()
        except TimeoutError as error:
            if limit.expired():
                raise TaskTimeout from error
            raise
        except asyncio.CancelledError as error:
            if job in self._cancelled:
                raise Cancelled("The job was cancelled while it ran.") from error
            raise
        finally:
            self._tasks.pop(job, None)
            self._cancelled.discard(job)
            if sync in SyncToAsync.context_to_thread_executor:
                await sync_to_async(close_old_connections)()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                Thread(target=self._loop.run_forever, name="redis-kit-loop", daemon=True).start()
        return self._loop


def synchronous() -> Any:
    """Return what gives the synchronous parts of a thread's tasks a thread of their own."""
    return ThreadSensitiveContext()
