"""The latency of an idle worker, and the lateness of scheduled jobs."""

import random
import time
from typing import NamedTuple

from benchmarks.support.workers.server import percentile
from benchmarks.support.workers.testbed import TestBed

PAUSE = 0.025  # seconds between two jobs: the worker is idle again long before the next
SCHEDULED, WITHIN, AHEAD = 2000, 10.0, 3.0  # jobs, due within 10 seconds, the first in 3 seconds
SEED = 20131  # for equal times in each round
LONG, SHORT, SHORTS = 10.0, 0.001, 1000  # seconds of a long and a short job, and the number of short ones


class Delays(NamedTuple):
    """Delays in ms."""

    p50: float
    p99: float
    longest: float
    shortest: float


def delays(values: list[float]) -> Delays:
    """Return the percentiles and extremes of these values."""
    return Delays(percentile(values, 0.5), percentile(values, 0.99), max(values), min(values))


def idle_start(bed: TestBed, count: int = 200, pause: float = PAUSE) -> tuple[Delays, Delays]:
    """Return the time from the return of the call to the start of the job, and from the start of the call."""
    bed.empty()
    with bed.workers(), bed.driver() as driver:
        bed.warm(driver)
        calls = driver.ask("pace", 0, count, pause)
        bed.wait(count, seconds=30)
    began = bed.job_log.by_number()
    pairs = [(call, began[number]) for number, call in enumerate(calls) if number in began]
    after = [(begin - returned) / 1e6 for (_, returned), begin in pairs]
    return delays(after), delays([(begin - called) / 1e6 for (called, _), begin in pairs])


def lateness(bed: TestBed) -> Delays:
    """Return how late jobs start that are due at random times."""
    moments = random.Random(SEED)
    due = [AHEAD + moments.random() * WITHIN for _ in range(SCHEDULED)]
    bed.empty()
    with bed.workers(), bed.driver() as driver:
        bed.warm(driver)
        at = driver.ask("schedule", due)
        bed.wait(SCHEDULED, seconds=AHEAD + WITHIN + 10)
    zero = time.time_ns() - time.monotonic_ns()
    return delays([(begin + zero) / 1e6 - at[number] * 1e3 for number, begin in bed.job_log.by_number().items()])


def behind_a_long_one(bed: TestBed, processes: int) -> float:
    """Return the longest time in ms that a short job waited after a later job had started.

    Short jobs make the worker claim many at once; then a long one follows among them. Jobs that wait behind it in a
    batch are overtaken by jobs of other threads.
    """
    lengths = [SHORT] * (SHORTS // 2) + [LONG] + [SHORT] * (SHORTS // 2)
    bed.empty()
    with bed.workers(processes), bed.driver() as driver:
        bed.warm(driver)
        driver.ask("sleepers", lengths)
        bed.wait(len(lengths), seconds=LONG + 10)
    began = bed.job_log.by_number()
    longest, earliest = 0.0, float("inf")
    for number in reversed(range(len(lengths))):
        begin = began.get(number, time.monotonic_ns())
        longest = max(longest, begin - earliest)
        earliest = min(earliest, begin)
    return longest / 1e6
