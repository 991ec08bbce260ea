"""Statistics: how often tasks ran, for how long, and what queues did by hour."""

from collections.abc import Iterable
from typing import Any

from redis_kit.queues.engine.feature import Duty, Feature, Supervision


class Statistics(Feature):
    """Worker processes count attempts, and supervisors add up past minutes."""

    name = "statistics"
    panels = ("redis_kit.queues.features.statistics.page.TasksPanel",)
    metrics = ("redis_kit.queues.features.statistics.metrics.TaskMetrics",)
    process_parts = {"worker": "redis_kit.queues.features.statistics.counter.TaskStatistics"}
    queue_view = "redis_kit.queues.features.statistics.view"

    def hours(self, queue: str, count: int) -> Any:
        """Return the flow that reads the numbers of a queue by hour."""
        from redis_kit.queues.features.statistics.inspection import read_history

        return read_history(queue, count, "default")

    def duties(self, supervisor: Supervision) -> Iterable[Duty]:
        """Return the one that adds up past minutes."""
        from redis_kit.queues.features.statistics.counter import HourFolding

        return (HourFolding(supervisor.queues),)
