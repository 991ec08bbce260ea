"""The job that runs, as holders of locks, log lines and a tracer see it."""

from contextlib import AbstractContextManager, nullcontext
from contextvars import Token
from typing import Any

from redis_kit.core.activity import current_fields, current_work
from redis_kit.core.tracing import spans
from redis_kit.queues.errors import Retry, Snooze
from redis_kit.queues.jobs.message import Message
from redis_kit.queues.tasks.current_job import CurrentJob
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

Tokens = tuple[Token[str], Token[Any]]
NO_SPAN = nullcontext()


def begin(running: CurrentJob, path: str) -> Tokens:
    """Note that a job of a task begins here."""
    return current_work.set(f"job {path} {running.job.id}"), current_fields.set(running.log_fields)


def end(tokens: Tokens) -> None:
    """Note that it has ended."""
    current_work.reset(tokens[0])
    current_fields.reset(tokens[1])


def traced(source: WorkerQueue, running: CurrentJob, call: Message) -> AbstractContextManager[None]:
    """Return the span of a job, if spans are recorded."""
    tracer = spans.tracer()
    if tracer is None:
        return NO_SPAN
    job = running.job
    span: AbstractContextManager[None] = tracer.running(
        call.task, source.queue_name, job.id, job.attempt, call.trace, postponed=(Retry, Snooze)
    )
    return span
