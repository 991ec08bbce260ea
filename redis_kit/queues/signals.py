"""Signals of jobs and workers. Receivers run in the process that sends the signal."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.dispatch import Signal

from redis_kit.core.flow import Flow, arun, run

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


class Sending:
    """The step that sends a signal for each of these arguments."""

    __slots__ = ("every", "sender", "signal")

    def __init__(self, signal: Signal, sender: type, every: Iterable[Mapping[str, Any]]) -> None:
        self.signal, self.sender, self.every = signal, sender, every

    def run(self, client: Any) -> None:
        """Send the signals."""
        for arguments in self.every:
            self.signal.send_robust(self.sender, **arguments)

    async def arun(self, client: Any) -> None:
        """See run()."""
        for arguments in self.every:
            await self.signal.asend_robust(self.sender, **arguments)


def announcement(sender: type, queue: str, ids: list[str]) -> Flow[None]:
    """Send job_enqueued for each of these new jobs, as a flow."""
    if ids and job_enqueued.receivers:
        yield Sending(job_enqueued, sender, [{"queue": queue, "id": id} for id in ids])


def announce(sender: type, queue: str, ids: list[str]) -> None:
    """See announcement()."""
    run(announcement(sender, queue, ids), None)


async def aannounce(sender: type, queue: str, ids: list[str]) -> None:
    """See announcement()."""
    await arun(announcement(sender, queue, ids), None)
