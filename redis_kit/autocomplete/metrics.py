"""The metrics of autocomplete."""

from redis_kit.autocomplete.inventory import all_indexes
from redis_kit.core.flow import Flow
from redis_kit.core.metrics.families import Metric, MetricSource, Sample

ENTRIES = Metric("redis_kit_autocomplete_entries", "gauge", "Entries of an index for autocomplete.", ("index",))
COMPLETE = Metric("redis_kit_autocomplete_complete", "gauge", "1 if the index of a model may answer.", ("index",))


class AutocompleteMetrics(MetricSource):
    """The size and the state of each index."""

    metrics = (ENTRIES, COMPLETE)

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples of a connection, indexes of models first. Two to three round trips."""
        infos = (yield from all_indexes.read(using)).infos
        samples = [ENTRIES.sample(info.entries, info.name) for info in infos[:limit]]
        of_models = filter(all_indexes.is_of_model, infos[:limit])
        return samples + [COMPLETE.sample(int(info.complete), info.name) for info in of_models]
