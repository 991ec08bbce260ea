"""The metrics of search."""

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.metrics.families import Metric, MetricSource, Sample
from redis_kit.search.inspection import read_indexes
from redis_kit.search.settings import SearchSettings

DOCUMENTS = Metric("redis_kit_search_documents", "gauge", "Documents in an index.", ("index",))
WORDS = Metric("redis_kit_search_words", "gauge", "Different words in an index.", ("index",))
MEMORY = Metric("redis_kit_search_memory_bytes", "gauge", "Estimated size of an index.", ("index",))
COMPLETE = Metric("redis_kit_search_complete", "gauge", "1 if no change was missed since a rebuild.", ("index",))
WAITING = Metric("redis_kit_search_waiting", "gauge", "Changed rows that are not written yet.", ("index",))
SEARCHES = Metric("redis_kit_search_searches_total", "counter", "Searches.", ("index",))
EMPTY = Metric("redis_kit_search_empty_total", "counter", "Searches without a result.", ("index",))
SLOW = Metric("redis_kit_search_slow_total", "counter", "Searches of 50 ms or more.", ("index",))


class SearchMetrics(MetricSource):
    """The size of each index, and its searches."""

    metrics = (DOCUMENTS, WORDS, MEMORY, COMPLETE, WAITING, SEARCHES, EMPTY, SLOW)

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples of the component's connection. Two round trips."""
        if using != conf.section(SearchSettings).USING:
            return []
        _total, infos = yield from read_indexes(using, 0, limit)
        return [
            metric.sample(number, info.name)
            for info in infos
            for metric, number in (
                (DOCUMENTS, info.documents),
                (WORDS, info.words),
                (MEMORY, info.memory),
                (COMPLETE, int(info.complete)),
                (WAITING, info.waiting),
                (SEARCHES, info.searches),
                (EMPTY, info.empty),
                (SLOW, info.slow),
            )
        ]
