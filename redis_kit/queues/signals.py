"""Signals of jobs and workers. Receivers run in the process that sends the signal."""

from typing import Any

from django.dispatch import Signal

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


def announce(sender: type, queue: str, ids: list[str]) -> list[str]:
    """Send job_enqueued for each of these new jobs, and return them."""
    if job_enqueued.receivers:
        for id in ids:
            job_enqueued.send_robust(sender, queue=queue, id=id)
    return ids


async def aannounce(sender: type, queue: str, ids: list[str]) -> list[str]:
    """See announce()."""
    if job_enqueued.receivers:
        for id in ids:
            await job_enqueued.asend_robust(sender, queue=queue, id=id)
    return ids


class Announcement:
    """The step that sends job_enqueued for each of these new jobs."""

    __slots__ = ("arguments",)

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def run(self, client: Any) -> None:
        """Send the signals."""
        announce(*self.arguments)

    async def arun(self, client: Any) -> None:
        """See run()."""
        await aannounce(*self.arguments)


def announcement(sender: type, queue: str, ids: list[str]) -> Flow[None]:
    """Announce new jobs, as a flow."""
    if ids and job_enqueued.receivers:
        yield Announcement(sender, queue, ids)
