"""The end of an attempt to run a job, before it is recorded."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from redis_kit.core.logs.error_text import text_of
from redis_kit.queues.errors import Interrupted, NewerMessage, Snooze
from redis_kit.queues.jobs.job import Job
from redis_kit.queues.jobs.message import Message
from redis_kit.queues.tasks.task import Task
from redis_kit.queues.worker.run.hand_over import RoutedJob
from redis_kit.queues.worker.run.postponement import InterruptedJob, PostponedJob, SnoozedJob, UnfitJob
from redis_kit.queues.worker.run.recorder import ResultRecorder
from redis_kit.queues.worker.run.workflow_step import WorkflowStep
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue


class Outcome(NamedTuple):
    """The outcome of an attempt: its task, if known, and the error, if it failed."""

    task: Task[..., Any] | None = None
    error: BaseException | None = None
    value: bytes = b""
    final: bool = False  # another attempt can't help
    unfit: Message | NewerMessage | None = None  # a call that this worker can't run
    path: str = ""  # of the task, if it began
    handed: RoutedJob | None = None  # it is to be handed over to another system
    expires: int = 0  # of the call
    step: WorkflowStep | None = None
    run_time: float = 0.0  # seconds
    trace: Mapping[str, str] = {}  # the ids of its span
    isolated: bool = False  # it is to run in a process of its own
    looped: bool = False  # it stored how far its resumable loops are

    def postponed(self, source: WorkerQueue, job: Job, recorder: ResultRecorder | None) -> PostponedJob | None:
        """Return the job if its attempt does not count."""
        error = self.error
        if self.unfit and isinstance(error, Exception):
            return UnfitJob(source, job, self.unfit, error, recorder)
        if self.task and issubclass(type(error), Snooze):
            return SnoozedJob.of(source, job, self.task, error, self.expires, recorder)  # type: ignore[arg-type]
        if self.task and issubclass(type(error), Interrupted):
            return InterruptedJob(source, job, self.task, text_of(error))  # type: ignore[arg-type]
        return None
