"""Signals of jobs and workers. Receivers run in the process that sends the signal."""

from django.dispatch import Signal

from redis_kit.core.awaitables import sending
from redis_kit.core.flow import Flow

# queue, id: a job was added. Sent by the process that added it.
job_enqueued = Signal()
# queue, job, task: an attempt begins. Sent by the worker, like the following signals.
job_started = Signal()
# queue, job, task: an attempt succeeded and was recorded.
job_succeeded = Signal()
# queue, job, task, error: an attempt failed, and there will be another.
job_retried = Signal()
# queue, job, task, delay: a task raised Snooze; no attempt was counted.
job_snoozed = Signal()
# queue, id, reason: a job is dead. Its task and content may be unknown.
job_dead = Signal()
# worker, queues: a worker process begins to work. Sent in that process, like the next signal.
worker_started = Signal()
# worker, queues: it runs no more jobs and is about to exit. Not sent if the process is killed.
worker_stopping = Signal()


def announcement(sender: type, queue: str, ids: list[str]) -> Flow[None]:
    """Send job_enqueued for each of these new jobs, as a flow."""
    for id in ids if job_enqueued.receivers else ():
        yield sending(job_enqueued, sender, queue=queue, id=id)
