"""Runs one job: from its message to the recorded outcome."""

import asyncio
import logging
from threading import Event
from time import monotonic
from typing import Any, NamedTuple

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import close_old_connections, reset_queries

from redis_kit.core import conf
from redis_kit.core.doing import doing
from redis_kit.core.errors import RedisFailure
from redis_kit.queues import message, registry, retry, signals
from redis_kit.queues.component import QueueSettings
from redis_kit.queues.job import Job, LeaseLost
from redis_kit.queues.serializers import CorruptMessage
from redis_kit.queues.tasks import Task, TaskTimeout, extended
from redis_kit.queues.worker import failpoints
from redis_kit.queues.worker.deadlines import Deadlines
from redis_kit.queues.worker.keeper import Keeper, keeper
from redis_kit.queues.worker.patience import until_answered
from redis_kit.queues.worker.source import Source

logger = logging.getLogger("redis_kit.worker")


class Outcome(NamedTuple):
    """How an attempt ended: of which task, if that is known, and why it failed, if it did."""

    task: Task[..., Any] | None = None
    error: BaseException | None = None
    max_attempts: int = 1
    value: bytes = b""


class Processor:
    """What every thread of the worker does with a job."""

    def __init__(self, deadlines: Deadlines, *, given_up: Event) -> None:
        self._deadlines, self._given_up = deadlines, given_up

    def process(self, source: Source, job: Job) -> None:
        """Run a job and record how it ended; after an outage of the server, as soon as that answers."""
        close_old_connections()
        try:
            self.run(source, job)
        finally:
            close_old_connections()
            if settings.DEBUG:
                reset_queries()

    def run(self, source: Source, job: Job) -> None:
        """Do the same, and leave the thread's database connections alone."""
        began = monotonic()
        kept = keeper(source, job)
        outcome = self._attempt(source, job, kept)
        logger.debug("Job %a of queue %a took %.3f s.", job.id, source.name, monotonic() - began)
        try:
            self._record(source, job, outcome, kept)
        except (LeaseLost, RedisFailure) as error:
            logger.warning("Job %a of queue %a: its outcome could not be recorded: %s", job.id, source.name, error)

    def _attempt(self, source: Source, job: Job, kept: Keeper | None) -> Outcome:
        try:
            call = message.loads(job.body)
            task = extended(registry.find(call.task))
        except (CorruptMessage, registry.UnknownTask) as error:
            return Outcome(error=error)
        signals.job_started.send_robust(Processor, queue=source.name, job=job, task=task)
        if kept:
            kept.begin(call)
        most = conf.section(QueueSettings).MAX_ATTEMPTS if task.max_attempts is None else task.max_attempts
        before = doing.set(f"job {task.module_path} {job.id}")
        try:
            failpoints.reach("begun")
            returned = self._call(task, call, kept.context() if kept and task.takes_context else None)
            failpoints.reach("called")
            return Outcome(task, value=kept.value(returned) if kept else b"")
        except BaseException as error:
            logger.warning("Job %a of queue %a (%s) failed.", job.id, source.name, task.module_path, exc_info=error)
            return Outcome(task, error, most)
        finally:
            doing.reset(before)

    def _call(self, task: Task[..., Any], call: message.Message, context: Any) -> Any:
        args = [context, *call.args] if task.takes_context else call.args
        if task.is_async:
            # Synchronous parts of it, the database among them, run in this thread, where connections are looked after.
            return async_to_sync(_awaited)(task, args, call.kwargs)
        try:
            with self._deadlines.limit(task.timeout):
                return task.func(*args, **call.kwargs)
        except TaskTimeout as error:
            raise _timeout(task) from error

    def _record(self, source: Source, job: Job, outcome: Outcome, kept: Keeper | None) -> None:
        if outcome.error is None:
            self._record_success(source, job, outcome, kept)
            return
        reason, delay = _described(outcome.error), retry.backoff(job.attempt)
        told = kept.error(outcome.error) if kept else (b"", 0)
        failpoints.reach("before_nack")
        state = until_answered(
            lambda: source.fail(job, delay=delay, error=reason, max_attempts=outcome.max_attempts, kept=told),
            self._given_up,
        )
        failpoints.reach("nacked")
        if state == "dead":
            logger.error("Job %a of queue %a is dead: %a", job.id, source.name, reason)
            signals.job_dead.send_robust(Processor, queue=source.name, id=job.id, reason=reason)
            if kept:
                kept.failed(outcome.error)
        else:
            said = {"queue": source.name, "job": job, "task": outcome.task}
            signals.job_retried.send_robust(Processor, **said, error=outcome.error)

    def _record_success(self, source: Source, job: Job, outcome: Outcome, kept: Keeper | None) -> None:
        failpoints.reach("noted")
        failpoints.reach("before_exchange")
        if kept:
            until_answered(lambda: source.succeed(job, outcome.value, keep=kept.keeps(failed=False)), self._given_up)
        else:
            until_answered(lambda: source.ack(job), self._given_up)
        failpoints.reach("exchanged")
        signals.job_succeeded.send_robust(Processor, queue=source.name, job=job, task=outcome.task)
        if kept:
            kept.succeeded()


def _described(error: BaseException) -> str:
    if isinstance(error, CorruptMessage):
        return f"corrupt: {error}"
    if isinstance(error, registry.UnknownTask):
        return str(error)
    return f"{type(error).__qualname__}: {error}"


async def _awaited(task: Task[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    try:
        async with asyncio.timeout(task.timeout) as limit:
            return await task.func(*args, **kwargs)
    except TimeoutError as error:
        if limit.expired():
            raise _timeout(task) from error
        raise


def _timeout(task: Task[..., Any]) -> TaskTimeout:
    return TaskTimeout(f"{task.module_path} ran for more than {task.timeout} s")
