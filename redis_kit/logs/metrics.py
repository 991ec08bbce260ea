"""The metrics of logs."""

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.metrics.families import Metric, MetricSource, Sample
from redis_kit.logs import keys
from redis_kit.logs.inspection import NAMES, read_levels
from redis_kit.logs.settings import LogSettings

STORED = Metric("redis_kit_log_records_total", "counter", "Log records since the hour began.", ("level",))
DROPPED = Metric("redis_kit_log_records_dropped_total", "counter", "Log records not stored, since the hour began.")


class LogMetrics(MetricSource):
    """The log records of all processes."""

    metrics = (STORED, DROPPED)

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples. One round trip."""
        if using != conf.section(LogSettings).USING:
            return []
        (hour,) = yield from read_levels(1)
        return [DROPPED.sample(hour[keys.DROPPED]), *(STORED.sample(hour[name], name) for name in NAMES)]
