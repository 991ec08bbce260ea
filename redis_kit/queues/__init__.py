"""Job queues: reliable, delayed, by priority; tasks on top of them, and workers that run those."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.queues.errors import (
        Cancelled,
        Expired,
        GiveUp,
        InvalidArguments,
        InvalidTask,
        NoResult,
        Retry,
        TaskTimeout,
        UnknownTask,
        WorkerLost,
    )
    from redis_kit.queues.jobs.job import Counts, DeadJob, Job, LeaseLost, Pause, StoredJob
    from redis_kit.queues.jobs.payload import CorruptMessage, NotSerializable, PayloadTooLarge
    from redis_kit.queues.jobs.progress import Progress
    from redis_kit.queues.monitoring.stats import (
        Report,
        acounts_of,
        aknown_queues,
        aorder,
        areports_of,
        aworkers,
        counts_of,
        known_queues,
        order,
        reports_of,
        workers,
    )
    from redis_kit.queues.monitoring.workers import Held, Worker
    from redis_kit.queues.queue import Queue
    from redis_kit.queues.store.unknown import UnknownCalls
    from redis_kit.queues.tasks.progress import aprogress, progress
    from redis_kit.queues.tasks.result import EnqueuedJob
    from redis_kit.queues.tasks.task import Task, task

__all__ = [
    "Cancelled",
    "CorruptMessage",
    "Counts",
    "DeadJob",
    "EnqueuedJob",
    "Expired",
    "GiveUp",
    "Held",
    "InvalidArguments",
    "InvalidTask",
    "Job",
    "LeaseLost",
    "NoResult",
    "NotSerializable",
    "Pause",
    "PayloadTooLarge",
    "Progress",
    "Queue",
    "Report",
    "Retry",
    "StoredJob",
    "Task",
    "TaskTimeout",
    "UnknownCalls",
    "UnknownTask",
    "Worker",
    "WorkerLost",
    "acounts_of",
    "aknown_queues",
    "aorder",
    "aprogress",
    "areports_of",
    "aworkers",
    "counts_of",
    "known_queues",
    "order",
    "progress",
    "reports_of",
    "task",
    "workers",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "errors": (
            *("Cancelled", "Expired", "GiveUp", "InvalidArguments", "InvalidTask", "NoResult", "Retry"),
            *("TaskTimeout", "UnknownTask", "WorkerLost"),
        ),
        "jobs.job": ("Counts", "DeadJob", "Job", "LeaseLost", "Pause", "StoredJob"),
        "monitoring.stats": (
            *("Report", "counts_of", "known_queues", "order", "reports_of", "workers"),
            *("acounts_of", "aknown_queues", "aorder", "areports_of", "aworkers"),
        ),
        "queue": ("Queue",),
        "tasks.result": ("EnqueuedJob",),
        "jobs.progress": ("Progress",),
        "tasks.progress": ("aprogress", "progress"),
        "jobs.payload": ("CorruptMessage", "NotSerializable", "PayloadTooLarge"),
        "tasks.task": ("Task", "task"),
        "store.unknown": ("UnknownCalls",),
        "monitoring.workers": ("Held", "Worker"),
    },
)
