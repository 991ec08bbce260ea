"""Job queues: reliable, delayed, by priority; tasks on top of them, and workers that run these.

How queues and workers are doing is in ``redis_kit.queues.inspection``.
"""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.queues.engine.job import Job, JobInfo, PauseInfo, QueueCounts
    from redis_kit.queues.errors import (
        Cancelled,
        CorruptMessage,
        Expired,
        GiveUp,
        InvalidArguments,
        InvalidMiddleware,
        InvalidSchedule,
        InvalidTask,
        InvalidWorkflow,
        LeaseLost,
        NoResult,
        NotSerializable,
        NotTaken,
        PayloadTooLarge,
        Retry,
        Snooze,
        TaskTimeout,
        UnknownTask,
        UnknownWorkflow,
        WorkerLost,
    )
    from redis_kit.queues.features.once.once import once
    from redis_kit.queues.features.results.progress import aprogress, progress
    from redis_kit.queues.features.resumable.loop import resumable
    from redis_kit.queues.features.schedules.periodic import periodic
    from redis_kit.queues.features.workflows.current import current_workflow
    from redis_kit.queues.features.workflows.parts import chain, failures, group, previous
    from redis_kit.queues.features.workflows.workflow import Workflow
    from redis_kit.queues.queue import Queue
    from redis_kit.queues.tasks.current_job import cancelled
    from redis_kit.queues.tasks.middleware import OutgoingCall
    from redis_kit.queues.tasks.options import Limit
    from redis_kit.queues.tasks.progress import Progress
    from redis_kit.queues.tasks.result import EnqueuedJob
    from redis_kit.queues.tasks.task import Task, task
    from redis_kit.queues.worker.run.attempt import Attempt
    from redis_kit.queues.worker.run.sink import Sink

__all__ = [
    "Attempt",
    "Cancelled",
    "CorruptMessage",
    "EnqueuedJob",
    "Expired",
    "GiveUp",
    "InvalidArguments",
    "InvalidMiddleware",
    "InvalidSchedule",
    "InvalidTask",
    "InvalidWorkflow",
    "Job",
    "JobInfo",
    "LeaseLost",
    "Limit",
    "NoResult",
    "NotSerializable",
    "NotTaken",
    "OutgoingCall",
    "PauseInfo",
    "PayloadTooLarge",
    "Progress",
    "Queue",
    "QueueCounts",
    "Retry",
    "Sink",
    "Snooze",
    "Task",
    "TaskTimeout",
    "UnknownTask",
    "UnknownWorkflow",
    "WorkerLost",
    "Workflow",
    "aprogress",
    "cancelled",
    "chain",
    "current_workflow",
    "failures",
    "group",
    "once",
    "periodic",
    "previous",
    "progress",
    "resumable",
    "task",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
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
        "features.workflows.current": ("current_workflow",),
        "features.workflows.parts": ("chain", "failures", "group", "previous"),
        "worker.run.attempt": ("Attempt",),
        "worker.run.sink": ("Sink",),
        "features.workflows.workflow": ("Workflow",),
    },
)
