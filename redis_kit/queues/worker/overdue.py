"""A job whose process had to be killed since it ran for too long: a failed attempt, as if the task had raised it."""

import logging

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Call
from redis_kit.queues import message, registry, retry, signals
from redis_kit.queues.component import QueueSettings
from redis_kit.queues.job import Job, LeaseLost, read
from redis_kit.queues.tasks import TaskTimeout, extended
from redis_kit.queues.worker.board import Running
from redis_kit.queues.worker.keeper import keeper
from redis_kit.queues.worker.source import Source

logger = logging.getLogger("redis_kit.worker")


def fail(source: Source, running: Running) -> None:
    """End the attempt of a job that ran in a dead child. Two round trips; a repeat is safe."""
    record = source._run(_record(source, running.id))
    if record is None:
        return
    found = read(record)
    about = found.story if running.id.isascii() else b""
    job = Job(running.id, found.body, running.token, found.attempts, found.crashes, found.priority, found.due, about)
    task = extended(registry.find(message.loads(job.body).task))
    error = TaskTimeout(f"{task.module_path} ran for more than {task.timeout} s")
    reason, kept = f"{type(error).__qualname__}: {error}", keeper(source, job, {})
    most = conf.section(QueueSettings).MAX_ATTEMPTS if task.max_attempts is None else task.max_attempts
    told, delay = kept.error(error) if kept else (b"", 0), retry.backoff(job.attempt)
    try:
        state = source.fail(job, delay=delay, error=reason, max_attempts=most, kept=told)
    except LeaseLost:
        return
    what = job.id, source.name, task.module_path, job.attempt, most
    after = "it is dead" if state == "dead" else f"the next one in {delay:.1f} s"
    logger.error("Job %a of queue %a (%s): its process was killed, attempt %d of %d, %s: %a", *what, after, reason)
    if state == "dead":
        signals.job_dead.send_robust(TaskTimeout, queue=source.name, id=job.id, reason=reason)
    else:
        signals.job_retried.send_robust(TaskTimeout, queue=source.name, job=job, task=task, error=error)


def _record(source: Source, id: str) -> Flow[bytes | None]:
    found: bytes | None = yield Call("HGET", source.key("jobs"), id.encode("utf-8", "surrogateescape"))
    return found
