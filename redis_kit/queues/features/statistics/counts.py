"""How long attempts of a task took and waited: counts in classes of time, each 1.41 times as long as the one before.

Counts of many processes and hours add up. It is a histogram with exponential buckets, as in Prometheus and
HdrHistogram, with two classes for each power of two. A percentile is the longest time that the class allows.
"""

import math
import struct
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from itertools import accumulate
from typing import NamedTuple

CLASSES = 64  # the first ends at 0.125 ms, the last but one after 4 days
FIRST = 6  # classes below 1 ms
ROUNDING = 1e-9  # the end of a class is in it
FAILURES, RUN_MS, WAIT_MS = 128, 129, 130  # after the classes of run times and those of waits
HOUR = 3600
HOURS, KEPT_HOURS = 72, 90 * 24  # for which counts of tasks and numbers of queues are stored
_COUNT = struct.Struct(">BI")
_BLOCK = struct.Struct(">IH")
_MOST = 2**32 - 1


class Percentiles(NamedTuple):
    """Seconds within which half, 95 % and 99 % of the attempts are, at most; None without an attempt."""

    p50: float | None
    p95: float | None
    p99: float | None


class TaskStats(NamedTuple):
    """The attempts of a task: how many ran and failed, how long they took and waited, and seconds that all took.

    ``classes`` are the numbers of attempts by their run time: up to end_of(0), from there up to end_of(1), and so on.
    """

    runs: int
    failures: int
    run_time: Percentiles
    wait: Percentiles
    total: float
    classes: tuple[int, ...]


def add(counts: MutableMapping[int, float], run_time: float, wait: float, *, failed: bool) -> None:
    """Add one attempt to counts that begin with 0, given its times in seconds."""
    counts[bisect_left(_ENDS, run_time)] += 1
    counts[CLASSES + bisect_left(_ENDS, wait)] += 1
    counts[RUN_MS] += run_time * 1000
    counts[WAIT_MS] += wait * 1000
    if failed:
        counts[FAILURES] += 1


def class_of(seconds: float) -> int:
    """Return the class of a time."""
    return bisect_left(_ENDS, seconds)


def end_of(number: int) -> float:
    """Return the longest time of a class, in seconds."""
    return float(2 ** ((number - FIRST) / 2) / 1000)


def dumps(counts: Mapping[int, float]) -> bytes:
    """Return counts as they are sent to the server, as whole numbers."""
    return b"".join(_COUNT.pack(what, min(count, _MOST)) for what, sums in counts.items() if (count := round(sums)) > 0)


def summed(stored: Iterable[bytes]) -> Counter[int]:
    """Return the sums of the blocks of a task; what can't be read ends a text."""
    counts: Counter[int] = Counter()
    for hour in by_hour(stored).values():
        counts.update(hour)
    return counts


def by_hour(stored: Iterable[bytes]) -> defaultdict[int, Counter[int]]:
    """Return the sums of each hour; see summed()."""
    counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for blocks in stored:
        for hour, block in _blocks(blocks):
            for what, count in _COUNT.iter_unpack(block):
                counts[hour][what] += count
    return counts


def stats(counts: Counter[int]) -> TaskStats:
    """Return the statistics in the counts of a task."""
    run_times, waits = ([counts[first + number] for number in range(CLASSES)] for first in (0, CLASSES))
    return TaskStats(
        sum(run_times),
        counts[FAILURES],
        _percentiles(run_times, counts[RUN_MS] / 1000),
        _percentiles(waits, counts[WAIT_MS] / 1000),
        counts[RUN_MS] / 1000,
        tuple(run_times),
    )


def _blocks(text: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _BLOCK.size <= len(text):
        hour, size = _BLOCK.unpack_from(text, at)
        begin = at + _BLOCK.size
        at = begin + size * _COUNT.size
        if at <= len(text):
            yield hour, text[begin:at]


def _percentiles(classes: list[int], total: float) -> Percentiles:
    """Return the percentiles of times that make up a total. The 99th is no less than their mean."""
    if not (count := sum(classes)):
        return Percentiles(None, None, None)
    p50, p95, p99 = (_longest(classes, math.ceil(share * count), total) for share in (0.5, 0.95, 0.99))
    return Percentiles(p50, p95, max(p99, total / count))


def _longest(classes: list[int], rank: int, total: float) -> float:
    """Return the longest time that the attempt of a rank may have taken, the shortest one first.

    It is the end of its class; less, if it and the longer ones had taken more together than the total leaves for them.
    Totals are in whole milliseconds, so that of short times may be 0.
    """
    number = next(number for number, below in enumerate(accumulate(classes)) if below >= rank)
    shorter = rank - 1
    left = total
    for each in range(number + 1):
        left -= min(classes[each], shorter) * _begin_of(each)
        shorter -= min(classes[each], shorter)
    each_of_the_rest = left / (sum(classes) - rank + 1) if left > 0 else math.inf
    return max(_begin_of(number), min(end_of(number), each_of_the_rest))


def _begin_of(number: int) -> float:
    return end_of(number - 1) if number else 0.0


_ENDS = [end_of(number) * (1 + ROUNDING) for number in range(CLASSES - 1)]  # the last class goes on for ever
