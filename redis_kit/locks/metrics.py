"""The metrics of locks and semaphores."""

from typing import Any

from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.metrics.families import Metric, MetricSource, Sample
from redis_kit.locks import inspection

MOST_WAITED = 200  # names whose waits are added up
HELD = Metric("redis_kit_locks_held", "gauge", "Locks and semaphores that are held.")
WAITED = Metric(
    "redis_kit_locks_waited_seconds",
    "gauge",
    "Seconds for which callers waited within the last 24 hours, for the names with the longest waits.",
)


class LockMetrics(MetricSource):
    """How much is held, and how long callers waited."""

    metrics = (HELD, WAITED)

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples. One round trip."""
        parts: list[Flow[Any]] = [inspection.list_held(1, using), inspection.read_contended(MOST_WAITED, using)]
        (_, held, _), waits = yield from gather(parts)
        return [HELD.sample(held), WAITED.sample(sum(each.waited for each in waits))]
