"""Job queues: reliable, delayed, by priority; tasks on top of them, and workers that run these.

How queues and workers are doing is in ``redis_kit.queues.inspection``.
"""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.queues.engine.job import Job as Job
    from redis_kit.queues.engine.job import JobInfo as JobInfo
    from redis_kit.queues.engine.job import PauseInfo as PauseInfo
    from redis_kit.queues.engine.job import QueueCounts as QueueCounts
    from redis_kit.queues.errors import Cancelled as Cancelled
    from redis_kit.queues.errors import CorruptMessage as CorruptMessage
    from redis_kit.queues.errors import Expired as Expired
    from redis_kit.queues.errors import GiveUp as GiveUp
    from redis_kit.queues.errors import InvalidArguments as InvalidArguments
    from redis_kit.queues.errors import InvalidMiddleware as InvalidMiddleware
    from redis_kit.queues.errors import InvalidSchedule as InvalidSchedule
    from redis_kit.queues.errors import InvalidTask as InvalidTask
    from redis_kit.queues.errors import InvalidWorkflow as InvalidWorkflow
    from redis_kit.queues.errors import LeaseLost as LeaseLost
    from redis_kit.queues.errors import NoResult as NoResult
    from redis_kit.queues.errors import NotSerializable as NotSerializable
    from redis_kit.queues.errors import NotTaken as NotTaken
    from redis_kit.queues.errors import PayloadTooLarge as PayloadTooLarge
    from redis_kit.queues.errors import Retry as Retry
    from redis_kit.queues.errors import Snooze as Snooze
    from redis_kit.queues.errors import TaskTimeout as TaskTimeout
    from redis_kit.queues.errors import UnknownTask as UnknownTask
    from redis_kit.queues.errors import UnknownWorkflow as UnknownWorkflow
    from redis_kit.queues.errors import WorkerLost as WorkerLost
    from redis_kit.queues.features.once.once import once as once
    from redis_kit.queues.features.results.progress import aprogress as aprogress
    from redis_kit.queues.features.results.progress import progress as progress
    from redis_kit.queues.features.resumable.loop import resumable as resumable
    from redis_kit.queues.features.schedules.periodic import periodic as periodic
    from redis_kit.queues.features.workflows.parts import chain as chain
    from redis_kit.queues.features.workflows.parts import failures as failures
    from redis_kit.queues.features.workflows.parts import group as group
    from redis_kit.queues.features.workflows.parts import previous as previous
    from redis_kit.queues.features.workflows.start import current_workflow as current_workflow
    from redis_kit.queues.features.workflows.workflow import Workflow as Workflow
    from redis_kit.queues.queue import Queue as Queue
    from redis_kit.queues.tasks.current_job import cancelled as cancelled
    from redis_kit.queues.tasks.middleware import OutgoingCall as OutgoingCall
    from redis_kit.queues.tasks.options import Limit as Limit
    from redis_kit.queues.tasks.progress import Progress as Progress
    from redis_kit.queues.tasks.result import EnqueuedJob as EnqueuedJob
    from redis_kit.queues.tasks.task import Task as Task
    from redis_kit.queues.tasks.task import task as task
    from redis_kit.queues.worker.run.attempt import Attempt as Attempt
    from redis_kit.queues.worker.run.sink import Sink as Sink

_PUBLIC: dict[str, tuple[str, ...]] = {
    "features.once.once": ("once",),
    "errors": (
        *("Cancelled", "CorruptMessage", "Expired", "GiveUp", "InvalidArguments", "InvalidTask", "LeaseLost"),
        *(
            "InvalidMiddleware",
            "InvalidSchedule",
            "InvalidWorkflow",
            "NoResult",
            "NotSerializable",
            "NotTaken",
            "PayloadTooLarge",
        ),
        *("Retry", "Snooze", "TaskTimeout", "UnknownTask", "UnknownWorkflow", "WorkerLost"),
    ),
    "engine.job": ("Job", "JobInfo", "PauseInfo", "QueueCounts"),
    "tasks.progress": ("Progress",),
    "queue": ("Queue",),
    "features.results.progress": ("aprogress", "progress"),
    "tasks.current_job": ("cancelled",),
    "tasks.options": ("Limit",),
    "tasks.middleware": ("OutgoingCall",),
    "features.resumable.loop": ("resumable",),
    "tasks.result": ("EnqueuedJob",),
    "features.schedules.periodic": ("periodic",),
    "tasks.task": ("Task", "task"),
    "features.workflows.parts": ("chain", "failures", "group", "previous"),
    "worker.run.attempt": ("Attempt",),
    "worker.run.sink": ("Sink",),
    "features.workflows.start": ("current_workflow",),
    "features.workflows.workflow": ("Workflow",),
}
__all__ = [name for names in _PUBLIC.values() for name in names]
__getattr__, __dir__ = lazily(__name__, _PUBLIC)
