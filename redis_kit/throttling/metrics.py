"""The metrics of throttles."""

from redis_kit.core.flow import Flow
from redis_kit.core.metrics.families import MINUTES, Metric, MetricSource, Sample, since_block
from redis_kit.throttling.discovery import built_throttles
from redis_kit.throttling.statistics import read_minutes

ALLOWED = Metric("redis_kit_throttle_allowed_total", "counter", "Calls that a throttle allowed.", ("throttle",))
REFUSED = Metric(
    "redis_kit_throttle_refused_total",
    "counter",
    "Calls that a throttle refused, or would have refused in shadow mode.",
    ("throttle",),
)
SHADOW = Metric("redis_kit_throttle_shadow", "gauge", "Whether a throttle is in shadow mode.", ("throttle",))
OMITTED = Metric("redis_kit_throttles_omitted", "gauge", "Throttles beyond the limit, whose metrics are left out.")


class ThrottleMetrics(MetricSource):
    """The calls of the throttles that this process has built."""

    metrics = (ALLOWED, REFUSED, SHADOW, OMITTED)

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples. One round trip."""
        throttles = [throttle for throttle in built_throttles() if throttle.using == using]
        shown = throttles[:limit]
        by_throttle = (yield from read_minutes(shown, MINUTES)) if shown else {}
        samples = [OMITTED.sample(len(throttles) - len(shown))]
        for throttle, minutes in by_throttle.items():
            last = int(minutes[-1].start.timestamp()) // 60
            allowed, refused = [each.allowed for each in minutes], [each.refused for each in minutes]
            samples.append(ALLOWED.sample(since_block(last, allowed), throttle.name))
            samples.append(REFUSED.sample(since_block(last, refused), throttle.name))
            samples.append(SHADOW.sample(bool(throttle.shadow), throttle.name))
        return samples
