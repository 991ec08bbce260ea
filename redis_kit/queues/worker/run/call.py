"""The innermost link: the function of a task, within its time, and around it the middleware of the project."""

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import iscoroutinefunction
from threading import local
from typing import Any, cast

from asgiref.sync import sync_to_async

from redis_kit.queues.errors import CANCELLED_WHILE_RUNNING, Cancelled, InvalidMiddleware, TaskTimeout
from redis_kit.queues.tasks import middleware
from redis_kit.queues.tasks.registry import is_coroutine
from redis_kit.queues.worker.run.attempt import Attempt
from redis_kit.queues.worker.run.event_loop import EventLoop, synchronous
from redis_kit.queues.worker.run.middleware import Handler, WorkerContext
from redis_kit.queues.worker.run.timeouts import Timeouts
from redis_kit.queues.worker.shared import failpoints

AsyncHandler = Callable[[Attempt], Awaitable[Any]]


class Call:
    """Calls the function of a task. One per process."""

    def __init__(self, worker: WorkerContext) -> None:
        self._deadlines: Timeouts = worker.deadlines
        self._coroutines: EventLoop = worker.coroutines
        self._own = local()
        # By whether the function is a coroutine function. Made now: a wrong middleware must not cost a job an attempt.
        self._chains = {is_async: self._chain(is_async=is_async) for is_async in (False, True)}

    def __call__(self, attempt: Attempt) -> Any:
        """Return what the task returns."""
        try:
            returned = self._chains[is_coroutine(attempt.task.func)](attempt)
        except TaskTimeout as error:
            task = attempt.task
            error.args = error.args or (f"{task.module_path} ran for more than {task.timeout} s",)
            raise
        except Cancelled as error:
            error.args = error.args or (CANCELLED_WHILE_RUNNING,)
            raise
        attempt.has_returned = True
        failpoints.reach("called")
        return returned

    def _chain(self, *, is_async: bool) -> Handler:
        """Return the function with the middleware of the project around it, as Django builds that of requests."""
        factories = middleware.factories()
        if not factories:
            return self._on_loop(_call) if is_async else self._within_time(_call)
        handler: Handler = _awatched if is_async else _watched
        on_loop = is_async
        for factory in reversed(factories):
            can_be_async = getattr(factory, "async_capable", False)
            # As in Django: the way changes only where a middleware can't go it.
            goes_on_loop = can_be_async and (on_loop or not getattr(factory, "sync_capable", True))
            if on_loop and not goes_on_loop:
                handler = self._on_loop(handler)
            elif goes_on_loop and not on_loop:
                handler = cast(Handler, sync_to_async(self._within_time(handler), thread_sensitive=True))
            handler, on_loop = middleware.made(factory, handler), goes_on_loop
            if on_loop and not iscoroutinefunction(handler):
                handler = _coroutine_function(handler)
        if on_loop:
            return self._on_loop(_achecked(handler))
        checked = _checked(handler)
        return checked if is_async else self._within_time(checked)

    def _within_time(self, handler: Handler) -> Handler:
        run_within = self._deadlines.run_within

        def run(attempt: Attempt) -> Any:
            return run_within((attempt.number, attempt.job.id), attempt.task.timeout, partial(handler, attempt))

        return run

    def _on_loop(self, handler: AsyncHandler) -> Handler:
        def run(attempt: Attempt) -> Any:
            if not hasattr(self._own, "synchronous"):
                self._own.synchronous = synchronous()
            sync = self._own.synchronous
            key, work = (attempt.number, attempt.job.id), partial(handler, attempt)
            return self._coroutines.run(key, work, timeout=attempt.task.timeout, sync=sync)

        return run


def _coroutine_function(handler: AsyncHandler) -> AsyncHandler:
    """Return an object with an asynchronous ``__call__`` as what the next middleware takes for asynchronous."""

    async def run(attempt: Attempt) -> Any:
        return await handler(attempt)

    return run


def _call(attempt: Attempt) -> Any:
    args = attempt.args if attempt.context is None else [attempt.context, *attempt.args]
    return attempt.task.func(*args, **attempt.kwargs)


def _watched(attempt: Attempt) -> Any:
    attempt.was_called = True
    try:
        attempt.returned = _call(attempt)
    except BaseException as error:
        attempt.error = error
        raise
    return attempt.returned


async def _awatched(attempt: Attempt) -> Any:
    attempt.was_called = True
    try:
        attempt.returned = await _call(attempt)
    except BaseException as error:
        attempt.error = error
        raise
    return attempt.returned


def _checked(handler: Handler) -> Handler:
    def run(attempt: Attempt) -> Any:
        try:
            returned = handler(attempt)
            _check(attempt, returned)
            return returned
        finally:
            attempt.error = attempt.returned = None  # the error refers to frames that refer to the attempt

    return run


def _achecked(handler: AsyncHandler) -> AsyncHandler:
    async def run(attempt: Attempt) -> Any:
        try:
            returned = await handler(attempt)
            _check(attempt, returned)
            return returned
        finally:
            attempt.error = attempt.returned = None

    return run


def _check(attempt: Attempt, returned: Any) -> None:
    """Raise an error if a middleware took the task's error or value for itself, or did not call the task."""
    if attempt.error is not None:
        attempt.error.add_note(f"{middleware.listed()} caught this error. The attempt failed all the same.")
        raise attempt.error
    if not attempt.was_called:
        raise InvalidMiddleware(
            f"{middleware.listed()} returned without a call of {attempt.task.module_path}. Call call_next(attempt), or "
            "raise GiveUp, Retry or Snooze."
        )
    if returned is None and attempt.returned is not None and attempt.recorder:
        attempt.has_returned = True
        raise InvalidMiddleware(
            f"{middleware.listed()} returned None in place of what {attempt.task.module_path} returned. Write 'return "
            "call_next(attempt)'."
        )
