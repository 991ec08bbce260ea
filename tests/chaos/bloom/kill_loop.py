"""No value of a Bloom filter is forgotten while rebuilds are killed and the server restarts.

``python -m tests.chaos bloom.kill_loop 1000000`` adds a million values by three processes. A fourth one rebuilds the
filter from the values that were acknowledged, and is killed at random moments. The server writes each change to its
disk before it answers, and is killed too.
"""

import mmap
import random
import time
from contextlib import suppress
from dataclasses import dataclass

from redis_kit.bloom import BloomFilter
from redis_kit.bloom import filter as module
from redis_kit.core.errors import RebuildLost, RebuildRunning, RedisKitError
from redis_kit.core.indexes import generations
from tests.chaos.engine import program
from tests.chaos.engine.crew import Crew, Forked
from tests.chaos.engine.faults import Faults, restart, weighted
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import stage, wait_until

ADDERS = 3
LEASE_MS = 300  # so that the rebuild after a kill need not wait for a minute
ADDER_PAUSE = 0.03  # seconds after a batch; rebuilds need some of the server's time, too
LAST_REBUILD = 30.0  # seconds for a rebuild without kills, if none was complete before
SPACE = 10**9  # values of an adder: its number times this, and on
FAULTS = {"restart": 15, "rebuild killed": 21, "none": 64}


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many values are added."""

    values: int
    pause: float = 5.0  # seconds between two faults, at most


class Progress:
    """The numbers of values that were begun and acknowledged by each adder, and of rebuilds; all processes share them.

    A rebuild reads those that were begun, as a table has a row before its value is added.
    """

    def __init__(self) -> None:
        self._counts = memoryview(mmap.mmap(-1, 16 * ADDERS + 8)).cast("Q")  # each is written and read at once

    def begin(self, adder, count):
        self._counts[ADDERS + adder] = count

    def set(self, adder, count):
        self._counts[adder] = count

    def get(self, adder):
        return self._counts[adder]

    def begun(self, adder):
        return self._counts[ADDERS + adder]

    def note_rebuild(self):
        self._counts[2 * ADDERS] += 1

    def rebuilds(self):
        return self._counts[2 * ADDERS]

    def total(self):
        return sum(map(self.get, range(ADDERS)))

    def values(self):
        """Yield the values of the source; those of an adder that has gone on meanwhile, too."""
        for adder in range(ADDERS):
            number = 0
            while number < self.begun(adder):
                yield adder * SPACE + number
                number += 1


def add_all(seen, progress, adder, wanted, chance):
    """Add values in batches; each is repeated until it is acknowledged."""
    count = 0
    while count < wanted:
        size = min(wanted - count, chance.choice((1, 10, 500, 1000, 1000, 1000)))
        first = adder * SPACE + count
        progress.begin(adder, count + size)
        while True:
            with suppress(RedisKitError):
                seen.add_many(range(first, first + size))
                break
            time.sleep(0.01)
        count += size
        progress.set(adder, count)
        time.sleep(ADDER_PAUSE)


def rebuild_again_and_again(seen, progress):
    """Rebuild until killed."""
    while True:
        with suppress(RebuildRunning, RebuildLost, RedisKitError):
            seen.rebuild(progress.values())
            progress.note_rebuild()
        time.sleep(0.02)


def missing(seen, progress, chance, samples):
    """Return some of the acknowledged values that are not found."""
    values = []
    for _ in range(samples):
        adder = chance.randrange(ADDERS)
        if count := progress.get(adder):
            values.append(adder * SPACE + chance.randrange(count))
    with suppress(RedisKitError):
        return [value for value, found in zip(values, seen.contains_many(values), strict=True) if not found]
    return []


def run(plan):
    """Add values while rebuilds and the server are killed; then look for each."""
    with stage("always", CONNECT_TIMEOUT=5.0, READ_TIMEOUT=5.0) as place:
        generations.LEASE_MS = module.LEASE_MS = LEASE_MS
        chance, progress, lost = random.Random(plan.seed), Progress(), []
        seen = BloomFilter("killed", capacity=max(1000, plan.values // 2))  # so that it gets a second layer
        share = plan.values // ADDERS
        starts = {
            f"adder {n}": lambda n=n: Forked(lambda: add_all(seen, progress, n, share, random.Random(plan.seed + n)))
            for n in range(ADDERS)
        }
        crew = Crew(starts | {"rebuilder": lambda: Forked(lambda: rebuild_again_and_again(seen, progress))})
        place.at_the_end(crew.end)
        kinds = {"restart": lambda: restart(place.server), "rebuild killed": lambda: crew.replace("rebuilder")}
        order = weighted(chance, FAULTS)
        faults = Faults(kinds | {"none": lambda: None}, order, chance=chance, calm=(0, plan.pause))
        while progress.total() < share * ADDERS:
            faults.next()
            lost += missing(seen, progress, chance, 1000)
        wait_until(progress.rebuilds, LAST_REBUILD)
        crew.end()
        values = [adder * SPACE + number for adder in range(ADDERS) for number in range(progress.get(adder))]
        lost += [value for value, found in zip(values, seen.contains_many(values), strict=True) if not found]
    figures = f"{plan.values:,} values; {faults}; {progress.rebuilds()} rebuilds were complete"
    found = {"lost": [f"value {value} is missing" for value in lost]}
    return Outcome(figures, found, faults=faults.count.total() - faults.count["none"], rebuilds=progress.rebuilds())
