"""The metrics of search."""

from redis_kit.core.flow import Flow
from redis_kit.core.metrics.families import Metric, MetricSource, Sample
from redis_kit.search.inventory import all_indexes

BY_FIELD = {
    "documents": Metric("redis_kit_search_documents", "gauge", "Documents in an index.", ("index",)),
    "words": Metric("redis_kit_search_words", "gauge", "Different words and values in an index.", ("index",)),
    "memory": Metric("redis_kit_search_memory_bytes", "gauge", "Estimated size of an index.", ("index",)),
    "complete": Metric("redis_kit_search_complete", "gauge", "1 if no process has reported a lost change.", ("index",)),
    "waiting": Metric("redis_kit_search_waiting", "gauge", "Changed rows that are not written yet.", ("index",)),
    "searches": Metric("redis_kit_search_searches_total", "counter", "Searches.", ("index",)),
    "empty": Metric("redis_kit_search_empty_total", "counter", "Searches without a result.", ("index",)),
    "slow": Metric("redis_kit_search_slow_total", "counter", "Searches of 50 ms or more.", ("index",)),
}


class SearchMetrics(MetricSource):
    """The size of each index, and its searches."""

    metrics = tuple(BY_FIELD.values())

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples of a connection. Two round trips."""
        infos = (yield from all_indexes.read(using)).infos
        return [
            metric.sample(int(getattr(info, name)), info.name)
            for info in infos[:limit]
            for name, metric in BY_FIELD.items()
        ]
