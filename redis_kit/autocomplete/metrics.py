"""The metrics of autocomplete."""

from redis_kit.autocomplete.inspection import read_indexes
from redis_kit.autocomplete.settings import AutocompleteSettings
from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.metrics.families import Metric, MetricSource, Sample

ENTRIES = Metric("redis_kit_autocomplete_entries", "gauge", "Entries of an index for autocomplete.", ("index",))
COMPLETE = Metric("redis_kit_autocomplete_complete", "gauge", "1 if a rebuild has completed the index.", ("index",))


class AutocompleteMetrics(MetricSource):
    """The size and the state of each index."""

    metrics = (ENTRIES, COMPLETE)

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples of the component's connection. Two round trips; one more if a generation is new."""
        if using != conf.section(AutocompleteSettings).USING:
            return []
        _total, infos = yield from read_indexes(using, 0, limit)
        return [
            metric.sample(number, info.name)
            for info in infos
            for metric, number in ((ENTRIES, info.entries), (COMPLETE, int(info.complete)))
        ]
