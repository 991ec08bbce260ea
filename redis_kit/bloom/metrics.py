"""The metrics of Bloom filters."""

from redis_kit.bloom.inspection import read_filters
from redis_kit.bloom.settings import BloomSettings
from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.metrics.families import Metric, MetricSource, Sample

ITEMS = Metric("redis_kit_bloom_items", "gauge", "Values in a Bloom filter.", ("filter",))
FILL = Metric("redis_kit_bloom_fill_ratio", "gauge", "Used share of the capacity of all layers.", ("filter",))
ERROR = Metric("redis_kit_bloom_error_ratio", "gauge", "Share of false positives to be expected now.", ("filter",))
MEMORY = Metric("redis_kit_bloom_memory_bytes", "gauge", "Size of the bitmaps.", ("filter",))
COMPLETE = Metric("redis_kit_bloom_complete", "gauge", "1 if a rebuild has completed the filter.", ("filter",))


class BloomMetrics(MetricSource):
    """The size and the state of each filter."""

    metrics = (ITEMS, FILL, ERROR, MEMORY, COMPLETE)

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples of the component's connection. Two round trips."""
        if using != conf.section(BloomSettings).USING:
            return []
        _total, filters = yield from read_filters(using, 0, limit)
        return [
            metric.sample(number, info.name)
            for info in filters
            for metric, number in (
                (ITEMS, info.items),
                (FILL, info.fill),
                (ERROR, info.error),
                (MEMORY, info.memory),
                (COMPLETE, int(info.complete)),
            )
        ]
