"""The metrics of logs."""

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.metrics.families import Metric, MetricSource, Sample
from redis_kit.core.steps import Call
from redis_kit.logs import keys
from redis_kit.logs.record import NAMES
from redis_kit.logs.settings import LogSettings

STORED = Metric("redis_kit_log_records_total", "counter", "Log records of all processes that were stored.", ("level",))
DROPPED = Metric("redis_kit_log_records_dropped_total", "counter", "Log records of all processes that were dropped.")


class LogMetrics(MetricSource):
    """The log records of all processes. The server has the totals, so every process returns the same."""

    metrics = (STORED, DROPPED)

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples. One round trip."""
        if using != conf.section(LogSettings).USING:
            return []
        totals = yield Call("HMGET", keys.key(keys.TOTALS), keys.DROPPED, *NAMES)
        dropped, *stored = [int(total or 0) for total in totals]
        return [DROPPED.sample(dropped), *map(STORED.sample, stored, NAMES)]
