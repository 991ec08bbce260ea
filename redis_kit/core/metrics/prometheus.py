"""The metrics of all components for Prometheus."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from math import isinf
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from redis_kit.core import connections, flow
from redis_kit.core.client.addresses import aliases
from redis_kit.core.component import components
from redis_kit.core.errors import RedisKitError, RedisUnavailable
from redis_kit.core.gather import gather
from redis_kit.core.logs.error_text import described
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.metrics.families import Histogram, Metric, MetricSource, Sample

logger = logging.getLogger("redis_kit.metrics")
KINDS = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily, "histogram": HistogramMetricFamily}
LABELS = 100  # values of one label
UP = Metric("redis_kit_up", "gauge", "Whether the server of a connection answers.")
FAILED = Metric(
    "redis_kit_scrape_failed", "gauge", "Whether the metrics of a component could not be read.", ("component",)
)
_log_limit = LogRateLimit()


class RedisKitCollector(Collector):
    """A collector of prometheus_client, for a registry of the project or for exposition().

    Three round trips for each connection, on a Cluster two and one for each node. It raises nothing: a connection that
    does not answer is in ``redis_kit_up``, and a component that can't be read in ``redis_kit_scrape_failed``.
    """

    def describe(self) -> Iterable[Any]:
        """Return nothing, so that registering it asks no server."""
        return ()

    def collect(self) -> Iterator[Any]:
        """Yield the families of all components and connections."""
        sources = [(component.label, source) for component in components() for source in component.load_metrics()]
        samples: dict[Metric, list[tuple[str, Sample]]] = {}
        for alias in sorted(aliases()):
            for sample in _read(alias, sources):
                samples.setdefault(sample.metric, []).append((alias, sample))
        metrics = [UP, FAILED, *(metric for _label, source in sources for metric in source.metrics)]
        for metric in metrics:
            family = _family(metric, "connection", *metric.labels)
            for alias, sample in samples.get(metric, ()):
                _add(family, (alias, *sample.labels), sample.value)
            yield family


class _OwnCollector(Collector):
    """A collector of samples that are there already, of one process."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Any]:
        for sample in self._samples:
            family = _family(sample.metric, *sample.metric.labels)
            _add(family, sample.labels, sample.value)
            yield family


def exposition(accept: str = "", *, own: Sequence[Sample] = ()) -> tuple[bytes, str]:
    """Return the metrics of all components and their content type, in the format that an ``Accept`` header asks for.

    ``own`` are those of this process alone, one sample of each metric.
    """
    registry = CollectorRegistry()
    registry.register(RedisKitCollector())
    registry.register(_OwnCollector(own))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


def _family(metric: Metric, *labels: str) -> Any:
    return KINDS[metric.kind](metric.name, metric.help, labels=labels)


def _add(family: Any, labels: Sequence[str], value: float | Histogram) -> None:
    if isinstance(value, Histogram):
        buckets = [("+Inf" if isinf(bound) else str(bound), count) for bound, count in value.buckets]
        family.add_metric(labels, buckets, value.total)
    else:
        family.add_metric(labels, value)


def _read(alias: str, sources: Sequence[tuple[str, MetricSource]]) -> Iterator[Sample]:
    up, failed = True, {label: False for label, _source in sources}
    labels: dict[str, list[str]] = {}  # of the sources that failed, by the text of the error
    for (label, _source), result in zip(sources, _results(alias, sources), strict=True):
        if not isinstance(result, Exception):
            yield from result
            continue
        failed[label] = True
        up = up and not isinstance(result, RedisUnavailable)
        labels.setdefault(described(result), []).append(label)
    for text, (first, *others) in labels.items():
        if _log_limit.allows(f"{alias} {first}"):
            names = ", ".join([first, *others])
            logger.error("Metrics of %s can't be read from the connection %a: %s", names, alias, text)
    yield UP.sample(up)
    yield from (FAILED.sample(has_failed, label) for label, has_failed in failed.items())


def _results(alias: str, sources: Sequence[tuple[str, MetricSource]]) -> list[Any]:
    """Return the samples of each source, or its error."""
    try:
        flows = [source.read(alias, LABELS) for _label, source in sources]
        results: list[Any] = flow.run(gather(flows, return_exceptions=True), connections.client(alias))
        for place, (_label, source) in enumerate(sources):
            if not isinstance(results[place], Exception):
                results[place] = [*results[place], *source.read_servers(alias, LABELS)]
    except RedisKitError as error:
        return [error] * len(sources)
    return results
