"""How queues and workers are doing, for dashboards and metrics. Nothing here changes a job."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.queues.inspection.handovers import ahand_overs, hand_overs
    from redis_kit.queues.inspection.history import QueueHistory, aqueue_history, queue_history
    from redis_kit.queues.inspection.lost import LostWorker, alost_workers, lost_workers
    from redis_kit.queues.inspection.report import QueueStats
    from redis_kit.queues.inspection.stats import (
        acontrol_worker,
        alist_workers,
        aqueue_counts,
        aqueue_names,
        aqueue_stats,
        control_worker,
        list_workers,
        queue_counts,
        queue_names,
        queue_stats,
    )
    from redis_kit.queues.inspection.task_runs import TaskHistory, atask_history, atask_stats, task_history, task_stats
    from redis_kit.queues.inspection.workers import RunningJob, WorkerInfo
    from redis_kit.queues.jobs.run_counts import Percentiles, TaskStats
    from redis_kit.queues.store.handover import HandOvers
    from redis_kit.queues.store.unknown_calls import UnknownCalls

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
        "handovers": ("HandOvers", "ahand_overs", "hand_overs"),
        "history": ("QueueHistory", "aqueue_history", "queue_history"),
        "lost": ("LostWorker", "alost_workers", "lost_workers"),
        "report": ("QueueStats", "UnknownCalls"),
        "stats": (
            *(
                "control_worker",
                "list_workers",
                "queue_counts",
                "queue_names",
                "queue_stats",
            ),
            *("acontrol_worker", "alist_workers", "aqueue_counts", "aqueue_names", "aqueue_stats"),
        ),
        "task_runs": (
            *("Percentiles", "TaskHistory", "TaskStats"),
            *("atask_history", "atask_stats", "task_history", "task_stats"),
        ),
        "workers": ("RunningJob", "WorkerInfo"),
    },
)
