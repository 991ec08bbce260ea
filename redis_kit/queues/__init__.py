"""Job queues: reliable, delayed, by priority; tasks on top of them, and workers that run those."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.queues.expiry import Expired
    from redis_kit.queues.handle import Handle, NoResult
    from redis_kit.queues.job import Counts, DeadJob, Job, LeaseLost, Pause, StoredJob
    from redis_kit.queues.overview import (
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
    from redis_kit.queues.queue import Queue
    from redis_kit.queues.registry import UnknownTask
    from redis_kit.queues.retry import GiveUp, Retry
    from redis_kit.queues.running import Progress, aprogress, progress
    from redis_kit.queues.serializers import CorruptMessage, NotSerializable, PayloadTooLarge
    from redis_kit.queues.tasks import (
        BadArguments,
        Cancelled,
        InvalidTask,
        Task,
        TaskTimeout,
        WorkersDied,
        task,
    )
    from redis_kit.queues.unknown import UnknownCalls
    from redis_kit.queues.workerinfo import Held, Worker

__all__ = [
    "BadArguments",
    "Cancelled",
    "CorruptMessage",
    "Counts",
    "DeadJob",
    "Expired",
    "GiveUp",
    "Handle",
    "Held",
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
    "WorkersDied",
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
        "expiry": ("Expired",),
        "handle": ("Handle", "NoResult"),
        "job": ("Counts", "DeadJob", "Job", "LeaseLost", "Pause", "StoredJob"),
        "overview": (
            *("Report", "counts_of", "known_queues", "order", "reports_of", "workers"),
            *("acounts_of", "aknown_queues", "aorder", "areports_of", "aworkers"),
        ),
        "queue": ("Queue",),
        "registry": ("UnknownTask",),
        "retry": ("GiveUp", "Retry"),
        "running": ("Progress", "aprogress", "progress"),
        "serializers": ("CorruptMessage", "NotSerializable", "PayloadTooLarge"),
        "tasks": (
            *("BadArguments", "Cancelled", "InvalidTask", "Task", "TaskTimeout", "WorkersDied"),
            "task",
        ),
        "unknown": ("UnknownCalls",),
        "workerinfo": ("Held", "Worker"),
    },
)
