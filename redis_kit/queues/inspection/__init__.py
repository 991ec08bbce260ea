"""How queues and workers are doing, for dashboards and metrics. Nothing here changes a job."""

from redis_kit.queues.engine.handover import HandOvers
from redis_kit.queues.engine.run_counts import Percentiles, TaskStats
from redis_kit.queues.engine.unknown_calls import UnknownCalls
from redis_kit.queues.inspection.stats import (
    QueueHistory,
    QueueStats,
    ahand_overs,
    aqueue_counts,
    aqueue_history,
    aqueue_names,
    aqueue_stats,
    hand_overs,
    queue_counts,
    queue_history,
    queue_names,
    queue_stats,
)
from redis_kit.queues.inspection.task_runs import TaskHistory, atask_history, atask_stats, task_history, task_stats
from redis_kit.queues.inspection.workers import (
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
