"""The drain of a queue that was filled before: jobs a second between 5 % and all of them, so that start-up is out."""

from pathlib import Path
from typing import NamedTuple

from benchmarks.workers.contestant import Contestant, Failed, Filled, Pit
from benchmarks.workers.server import Server, median

SHARE = 0.05
TRIAL = 1000  # jobs, to learn how many one round takes
SECONDS = 2.0
FEWEST, MOST = 400, 60_000
LIMIT = 90.0  # seconds


class Drained(NamedTuple):
    """What came of one round."""

    rate: float  # jobs a second
    pings: float  # round trips a second, before and after
    lost: int
    repeated: int

    @property
    def ratio(self) -> float:
        """Return the rate as a multiple of a round trip's."""
        return self.rate / self.pings


class Result(NamedTuple):
    """What came of all rounds of one contestant."""

    contestant: Contestant
    processes: int
    filled: Filled
    rounds: list[Drained]

    @property
    def rate(self) -> float:
        """Return the median of jobs a second."""
        return median([one.rate for one in self.rounds])

    @property
    def ratio(self) -> float:
        """Return the median of the ratios to a round trip."""
        return median([one.ratio for one in self.rounds])


def drain(pit: Pit, filled: Filled, processes: int = 1) -> Drained:
    """Put the jobs back and let workers do them."""
    pit.restore(filled)
    before = pit.server.pings()
    with pit.workers(processes):
        done = pit.wait(filled.count, seconds=LIMIT)
    after = pit.server.pings()
    pit.marks.collect()
    numbers = [number for number, _ in pit.marks.notes]
    times = pit.marks.times()
    if not done and len(times) < filled.count * 0.5:
        raise Failed(f"{pit.contestant.title}: {len(times)} of {filled.count} jobs within {LIMIT:g} s")
    first, last = times[int(filled.count * SHARE)], times[min(filled.count, len(times)) - 1]
    rate = (min(filled.count, len(times)) - int(filled.count * SHARE) - 1) / (last - first) * 1e9
    lost = filled.count - len(set(numbers))
    return Drained(rate, (before + after) / 2, lost, len(numbers) - len(set(numbers)))


def trial(pit: Pit) -> int:
    """Return how many jobs a round takes for some seconds."""
    filled = pit.fill(TRIAL)
    return max(FEWEST, min(MOST, int(drain(pit, filled).rate * SECONDS)))


def side_by_side(
    server: Server, contestants: list[tuple[Contestant, int]], folder: Path, *, rounds: int = 3
) -> list[Result]:
    """Let each have its turn, round after round; the number is that of its processes."""
    pits: dict[Contestant, tuple[Pit, Filled]] = {}
    for contestant, _ in contestants:
        if contestant not in pits:
            place = folder / f"{contestant.peer}-{contestant.variant}"
            place.mkdir(exist_ok=True)
            pit = Pit(server, contestant, place)
            pits[contestant] = pit, pit.fill(trial(pit))
    results = [Result(contestant, processes, pits[contestant][1], []) for contestant, processes in contestants]
    for _ in range(rounds):
        for result in results:
            result.rounds.append(drain(*pits[result.contestant], result.processes))
    return results
