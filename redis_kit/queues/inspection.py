"""How queues and workers are doing, for dashboards and metrics. Nothing here changes a job."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.queues.features.handover.inspection import ahand_overs, hand_overs
    from redis_kit.queues.features.handover.store import HandOvers
    from redis_kit.queues.features.statistics.counts import Percentiles, TaskStats
    from redis_kit.queues.features.statistics.history import aqueue_history, queue_history
    from redis_kit.queues.features.statistics.inspection import (
        TaskHistory,
        atask_history,
        atask_stats,
        task_history,
        task_stats,
    )
    from redis_kit.queues.reports.stats import (
        QueueHistory,
        QueueStats,
        aqueue_counts,
        aqueue_names,
        aqueue_stats,
        queue_counts,
        queue_names,
        queue_stats,
    )
    from redis_kit.queues.reports.unknown_calls import UnknownCalls
    from redis_kit.queues.reports.workers import (
        LostWorker,
        RunningJob,
        WorkerInfo,
        acontrol_worker,
        alist_workers,
        alost_workers,
        control_worker,
        list_workers,
        lost_workers,
    )

__all__ = [
    "HandOvers",
    "LostWorker",
    "Percentiles",
    "QueueHistory",
    "QueueStats",
    "RunningJob",
    "TaskHistory",
    "TaskStats",
    "UnknownCalls",
    "WorkerInfo",
    "acontrol_worker",
    "ahand_overs",
    "alist_workers",
    "alost_workers",
    "aqueue_counts",
    "aqueue_history",
    "aqueue_names",
    "aqueue_stats",
    "atask_history",
    "atask_stats",
    "control_worker",
    "hand_overs",
    "list_workers",
    "lost_workers",
    "queue_counts",
    "queue_history",
    "queue_names",
    "queue_stats",
    "task_history",
    "task_stats",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "features.statistics.history": ("aqueue_history", "queue_history"),
        "features.handover.store": ("HandOvers",),
        "features.statistics.counts": (
            "Percentiles",
            "TaskStats",
        ),
        "reports.unknown_calls": ("UnknownCalls",),
        "reports.stats": (
            "QueueHistory",
            "QueueStats",
            "aqueue_counts",
            "aqueue_names",
            "aqueue_stats",
            "queue_counts",
            "queue_names",
            "queue_stats",
        ),
        "features.handover.inspection": (
            "ahand_overs",
            "hand_overs",
        ),
        "features.statistics.inspection": (
            "TaskHistory",
            "atask_history",
            "atask_stats",
            "task_history",
            "task_stats",
        ),
        "reports.workers": (
            "LostWorker",
            "RunningJob",
            "WorkerInfo",
            "acontrol_worker",
            "alist_workers",
            "alost_workers",
            "control_worker",
            "list_workers",
            "lost_workers",
        ),
    },
    home="redis_kit.queues",
)
