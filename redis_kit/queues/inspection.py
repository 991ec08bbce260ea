"""How queues and workers are doing, for dashboards and metrics. Nothing here changes a job."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.queues.features.handover.inspection import HandOvers as HandOvers
    from redis_kit.queues.features.handover.inspection import ahand_overs as ahand_overs
    from redis_kit.queues.features.handover.inspection import hand_overs as hand_overs
    from redis_kit.queues.features.statistics.counts import Percentiles as Percentiles
    from redis_kit.queues.features.statistics.counts import TaskStats as TaskStats
    from redis_kit.queues.features.statistics.inspection import TaskHistory as TaskHistory
    from redis_kit.queues.features.statistics.inspection import aqueue_history as aqueue_history
    from redis_kit.queues.features.statistics.inspection import atask_history as atask_history
    from redis_kit.queues.features.statistics.inspection import atask_stats as atask_stats
    from redis_kit.queues.features.statistics.inspection import queue_history as queue_history
    from redis_kit.queues.features.statistics.inspection import task_history as task_history
    from redis_kit.queues.features.statistics.inspection import task_stats as task_stats
    from redis_kit.queues.reports.stats import QueueHistory as QueueHistory
    from redis_kit.queues.reports.stats import QueueStats as QueueStats
    from redis_kit.queues.reports.stats import aqueue_counts as aqueue_counts
    from redis_kit.queues.reports.stats import aqueue_names as aqueue_names
    from redis_kit.queues.reports.stats import aqueue_stats as aqueue_stats
    from redis_kit.queues.reports.stats import queue_counts as queue_counts
    from redis_kit.queues.reports.stats import queue_names as queue_names
    from redis_kit.queues.reports.stats import queue_stats as queue_stats
    from redis_kit.queues.reports.unknown_calls import UnknownCalls as UnknownCalls
    from redis_kit.queues.reports.workers import LostWorker as LostWorker
    from redis_kit.queues.reports.workers import RunningJob as RunningJob
    from redis_kit.queues.reports.workers import WorkerInfo as WorkerInfo
    from redis_kit.queues.reports.workers import acontrol_worker as acontrol_worker
    from redis_kit.queues.reports.workers import alist_workers as alist_workers
    from redis_kit.queues.reports.workers import alost_workers as alost_workers
    from redis_kit.queues.reports.workers import control_worker as control_worker
    from redis_kit.queues.reports.workers import list_workers as list_workers
    from redis_kit.queues.reports.workers import lost_workers as lost_workers

_PUBLIC: dict[str, tuple[str, ...]] = {
    "features.statistics.counts": ("Percentiles", "TaskStats"),
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
    "features.handover.inspection": ("HandOvers", "ahand_overs", "hand_overs"),
    "features.statistics.inspection": (
        *("TaskHistory", "atask_history", "atask_stats", "task_history", "task_stats"),
        *("aqueue_history", "queue_history"),
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
}
__all__ = [name for names in _PUBLIC.values() for name in names]
__getattr__, __dir__ = lazily(__name__, _PUBLIC, home="redis_kit.queues")
