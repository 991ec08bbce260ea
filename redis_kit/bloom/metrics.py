"""The metrics of Bloom filters."""

from redis_kit.bloom.inspection import filters
from redis_kit.core.flow import Flow
from redis_kit.core.metrics.families import Metric, MetricSource, Sample

LABELS = ("filter",)
METRICS = {
    "items": Metric("redis_kit_bloom_items", "gauge", "Values in a Bloom filter.", LABELS),
    "fill": Metric("redis_kit_bloom_fill_ratio", "gauge", "Used share of the capacity of all layers.", LABELS),
    "error": Metric("redis_kit_bloom_error_ratio", "gauge", "Share of false positives to be expected now.", LABELS),
    "memory": Metric("redis_kit_bloom_memory_bytes", "gauge", "Size of the bitmaps.", LABELS),
    "complete": Metric("redis_kit_bloom_complete", "gauge", "1 if the filter of a model may answer.", LABELS),
}


class BloomMetrics(MetricSource):
    """The size and the state of each filter."""

    metrics = tuple(METRICS.values())

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples of a connection, the overfull filters first. Two round trips."""
        infos = (yield from filters.read(using)).infos
        numbers = [
            (metric, info.name, getattr(info, field)) for info in infos[:limit] for field, metric in METRICS.items()
        ]
        return [metric.sample(number, name) for metric, name, number in numbers if number is not None]
