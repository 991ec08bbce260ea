"""Metrics as data: each component says what it measures, in a flow that is carried out beside those of the others."""

from collections.abc import Iterable
from typing import ClassVar, Literal, NamedTuple

from redis_kit.core.flow import Flow

BLOCK = 60  # minutes
MINUTES = BLOCK + 1  # that since_block() needs: in its first minute an hour is compared with the one before


class Metric(NamedTuple):
    """A family of samples, in the words of Prometheus: a name with its unit, and what tells the samples apart.

    Beside its ``labels`` each sample has that of the connection. A counter may begin again at 0, as after a restart.
    """

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    labels: tuple[str, ...] = ()

    def sample(self, value: "float | Histogram", *labels: str) -> "Sample":
        """Return a sample of this metric."""
        if len(labels) != len(self.labels):
            raise TypeError(f"{self.name} has the labels {self.labels}, not {labels}.")
        return Sample(self, labels, value)


class Histogram(NamedTuple):
    """The value of a histogram: the sum, and how many are at most each bound, the last of which is infinite."""

    buckets: tuple[tuple[float, int], ...]
    total: float


class Sample(NamedTuple):
    """The value of a metric for these labels."""

    metric: Metric
    labels: tuple[str, ...]
    value: float | Histogram


class MetricSource:
    """The metrics of a component. ``Component.metrics`` names subclasses."""

    #: All metrics whose samples it may return.
    metrics: ClassVar[tuple[Metric, ...]]

    def read(self, using: str, limit: int) -> Flow[Iterable[Sample]]:
        """Return the samples of a connection, with at most ``limit`` values of each label. At most two round trips."""
        return ()
        yield  # a flow without steps

    def read_servers(self, using: str, limit: int) -> Iterable[Sample]:
        """Return the samples that concern each server of a connection, not the keys there. One round trip to each."""
        return ()


def since_block(minute: int, counts: Iterable[float]) -> float:
    """Return the sum of the minutes since the present hour began; ``minute`` is the last of them.

    So a counter is made of numbers by minute: every process returns the same, and it begins at 0 each hour. The counts
    are of MINUTES or more.
    """
    numbers = list(counts)
    first = len(numbers) - minute % BLOCK - 1
    return seen_to_restart(minute, sum(numbers[first:]), sum(numbers[max(0, first - BLOCK) : first]))


def seen_to_restart(minute: int, total: float, before: float) -> float:
    """Return a counter that began again at 0 with the present hour, given its total and that of the hour before.

    Prometheus sees a restart by a smaller number. A total that is not smaller is 0 in the first minute. Otherwise the
    runs of an hourly job would look like a single run.
    """
    return 0 if minute % BLOCK == 0 and 0 < before <= total else total
