"""How soon an idle worker starts a job, and how late it starts those that were scheduled."""

import random
import time
from typing import NamedTuple

from benchmarks.workers.contestant import Pit
from benchmarks.workers.server import percentile

PAUSE = 0.025  # seconds between two jobs: the worker is idle again long before the next
SCHEDULED, WITHIN, AHEAD = 2000, 10.0, 3.0  # jobs, due in this many seconds, from so many seconds on
SEED = 20131  # the same moments in each round
LONG, SHORT, SHORTS = 10.0, 0.001, 1000  # seconds a job takes, and how many short ones there are


class Delays(NamedTuple):
    """Delays in ms."""

    p50: float
    p99: float
    longest: float
    shortest: float


def delays(values: list[float]) -> Delays:
    """Return what is to be told of them."""
    return Delays(percentile(values, 0.5), percentile(values, 0.99), max(values), min(values))


def idle_start(pit: Pit, count: int = 200, pause: float = PAUSE) -> tuple[Delays, Delays]:
    """Return the time from the call's return, and from its beginning, to the beginning of the job."""
    pit.empty()
    with pit.workers(), pit.driver() as driver:
        pit.warm(driver)
        calls = driver.ask("pace", 0, count, pause)
        pit.wait(count, seconds=30)
    began = pit.marks.by_number()
    pairs = [(call, began[number]) for number, call in enumerate(calls) if number in began]
    after = [(begin - returned) / 1e6 for (_, returned), begin in pairs]
    return delays(after), delays([(begin - called) / 1e6 for (called, _), begin in pairs])


def lateness(pit: Pit) -> Delays:
    """Return how late jobs begin that are due at random moments."""
    moments = random.Random(SEED)
    due = [AHEAD + moments.random() * WITHIN for _ in range(SCHEDULED)]
    pit.empty()
    with pit.workers(), pit.driver() as driver:
        pit.warm(driver)
        at = driver.ask("schedule", due)
        pit.wait(SCHEDULED, seconds=AHEAD + WITHIN + 10)
    zero = time.time_ns() - time.monotonic_ns()
    return delays([(begin + zero) / 1e6 - at[number] * 1e3 for number, begin in pit.marks.by_number().items()])


def behind_a_long_one(pit: Pit, processes: int) -> float:
    """Return the longest time, in ms, for which a short job waited while one that came after it had begun.

    Short jobs make the worker take many at once; then comes a long one among them. Who is kept behind it by a batch is
    overtaken by those that others take.
    """
    lengths = [SHORT] * (SHORTS // 2) + [LONG] + [SHORT] * (SHORTS // 2)
    pit.empty()
    with pit.workers(processes), pit.driver() as driver:
        pit.warm(driver)
        driver.ask("sleepers", lengths)
        pit.wait(len(lengths), seconds=LONG + 10)
    began = pit.marks.by_number()
    longest, earliest = 0.0, float("inf")
    for number in reversed(range(len(lengths))):
        begin = began.get(number, time.monotonic_ns())
        longest = max(longest, begin - earliest)
        earliest = min(earliest, begin)
    return longest / 1e6
