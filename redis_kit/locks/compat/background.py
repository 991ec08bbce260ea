"""Background work for locks on a caller's own client: leases are renewed, and lost attempts are undone."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

from redis.exceptions import RedisError

from redis_kit.core import flow
from redis_kit.core.flow import Flow
from redis_kit.locks.renewal import scheduler
from redis_kit.locks.renewal.pending_releases import IN_TRANSIT

Reply = TypeVar("Reply")
logger = logging.getLogger("redis_kit.locks")

RENEWAL_RETRY = 1.0  # seconds until a failed renewal is retried
RELEASE_RETRY = 0.5  # seconds until a failed release is retried

NAME = "_redis_kit_lock_tasks"  # the loop's attribute

PeriodicFlow = Flow[float | None]  # returns the seconds until the next run, None to stop


async def cancellable(call: Awaitable[Reply]) -> Reply:
    """Return the reply of a call. Raises CancelledError if the task was cancelled during the call.

    redis-py writes within asyncio.wait_for(). Before Python 3.12 that ignores a cancellation in the moment in which the
    command was written, and a waiter would go on.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    reply = await call
    if task and task.cancelling() > before:
        raise asyncio.CancelledError
    return reply


class Run:
    """A step: one run of a script that the client's register_script() made."""

    __slots__ = ("args", "keys", "script")

    def __init__(self, script: Any, keys: list[bytes], args: list[Any]) -> None:
        self.script, self.keys, self.args = script, keys, args

    def run(self, client: Any) -> Any:
        """Run it: one round trip, three the first time on a server."""
        return self.script(keys=self.keys, args=self.args, client=client)

    async def arun(self, client: Any) -> Any:
        """See run()."""
        return await cancellable(self.script(keys=self.keys, args=self.args, client=client))


class Repeated:
    """A flow that this process repeats, in the thread that renews leases."""

    def __init__(self, make: Callable[[], PeriodicFlow], client: Any, *, after: float) -> None:
        self._make, self._client = make, client
        options = client.get_connection_kwargs()
        server = f"{options.get('path') or options.get('host')}:{options.get('port', '')}"
        scheduler.add(self.run_once, after=after, lane=f"redis-py {server}")

    def run_once(self) -> float | None:
        """Carry it out once; return the seconds until the next run, None to stop."""
        return flow.run(self._make(), self._client)

    def stop(self) -> None:
        """Stop."""
        scheduler.remove(self.run_once)


class _LoopTasks:
    """The runs of flows in one event loop. To be made while that loop runs.

    A timer may start one while asyncio.run() cancels all tasks, so the loop's end cancels those that are left.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = False
        # A loop that ends closes its asynchronous generators after it has cancelled its tasks.
        self._generator = self._until_the_end()
        with suppress(StopIteration):
            self._generator.__anext__().send(None)

    def start(self, run: Coroutine[Any, Any, None]) -> None:
        """Start a run, unless the loop ends."""
        if self._ended:
            run.close()
            return
        task = asyncio.get_running_loop().create_task(run)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _until_the_end(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._ended = True
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)


class AsyncRepeated:
    """A flow that the running event loop repeats, as long as it runs.

    It has a timer, and a task only for each run, so nothing is pending in a closed loop.
    """

    def __init__(self, make: Callable[[], PeriodicFlow], client: Any, *, after: float) -> None:
        self._make, self._client = make, client
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(after, self._start)
        self._tasks = _loop_tasks(self._loop)

    def stop(self) -> None:
        """Stop."""
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def _start(self) -> None:
        self._tasks.start(self._run_once())

    async def _run_once(self) -> None:
        try:
            after = await flow.arun(self._make(), self._client)
        except Exception as error:  # a subclass of the client may raise anything
            logger.warning("A lease was not renewed; retrying: %s", error)
            after = RENEWAL_RETRY
        if after is not None and self._timer:
            self._timer = self._loop.call_later(after, self._start)


def _loop_tasks(loop: asyncio.AbstractEventLoop) -> _LoopTasks:
    tasks: _LoopTasks | None = getattr(loop, NAME, None)
    if tasks is None:
        tasks = _LoopTasks()
        setattr(loop, NAME, tasks)
    return tasks


def renewal(step: Run, name: Any, every: float) -> PeriodicFlow:
    """Renew a lease once; stop when it has ended."""
    if (yield step):
        return every
    logger.warning("The lock %r was released elsewhere, or lost; its renewal stops.", name)
    return None


class RepeatedRelease:
    """Releases a lease, repeatedly until the server has answered or the lease has timed out.

    If the server may still carry out the attempt to acquire it, one answer that nothing is held is not final.
    """

    def __init__(self, step: Run, until: float, *, acquired: bool) -> None:
        self.step, self.until = step, until
        self._was_unknown = acquired

    def __call__(self) -> PeriodicFlow:
        """Send the release once."""
        if monotonic() > self.until:
            return None
        try:
            was_held = yield self.step
        except RedisError:
            return RELEASE_RETRY
        if was_held or self._was_unknown:
            return None
        self._was_unknown = True
        return IN_TRANSIT
