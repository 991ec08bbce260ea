"""The drain of a queue that was filled before: jobs a second between 5 % and all of them, so that start-up is out."""

from pathlib import Path
from typing import NamedTuple

from benchmarks.workers import work
from benchmarks.workers.contestant import Contestant, Failed, Filled, Pit
from benchmarks.workers.process import tail
from benchmarks.workers.server import Pings, Server, median

SHARE = 0.05
TRIAL = 300  # jobs, to learn how many one round takes
SECONDS = 2.0
FEWEST, MOST = 400, 60_000
LIMIT = 40.0  # seconds


class Work(NamedTuple):
    """Processor time per job, us."""

    worker: float
    server: float


class Drained(NamedTuple):
    """What came of one round."""

    rate: float  # jobs a second
    pings: Pings  # before and after
    work: Work
    lost: int
    repeated: int

    @property
    def ratio(self) -> float:
        """Return the rate as a multiple of a round trip's."""
        return self.rate / self.pings.rate

    @property
    def thrift(self) -> float:
        """Return the processor time of a round trip as a multiple of a job's: the ratio on one core without noise."""
        return self.pings.work / (self.work.worker + self.work.server) if self.pings.work else 0.0


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

    @property
    def thrift(self) -> float:
        """Return the median of the ratios of processor time."""
        return median([one.thrift for one in self.rounds])


def drain(pit: Pit, filled: Filled, processes: int = 1) -> Drained:
    """Put the jobs back and let workers do them."""
    pit.restore(filled)
    before = pit.server.pings()
    with pit.workers(processes) as pids:
        spent = _watched(pit, filled.count, pids)
    pings = Pings(*(median([*pair]) for pair in zip(before, pit.server.pings(), strict=True)))
    pit.marks.collect()
    numbers, times = [number for number, _ in pit.marks.notes], pit.marks.times()[: filled.count]
    first = int(filled.count * SHARE)
    if len(times) < filled.count * 0.5:
        raise Failed(f"{pit.contestant.title}: {len(times)} of {filled.count} jobs within {LIMIT:g} s\n{tail(pit.log)}")
    rate = (len(times) - first - 1) / (times[-1] - times[first]) * 1e9
    lost = filled.count - len(set(numbers))
    return Drained(rate, pings, spent, lost, len(numbers) - len(set(numbers)))


def _watched(pit: Pit, count: int, pids: list[int]) -> Work:
    pit.wait(int(count * SHARE) + 1, seconds=LIMIT)
    pids, server = work.sessions(pids), [pit.server.pid]
    begun, before = len(pit.marks.notes), (work.seconds(pids), work.seconds(server))
    pit.wait(count, seconds=LIMIT)
    jobs = max(1, len(pit.marks.notes) - begun)
    return Work((work.seconds(pids) - before[0]) / jobs * 1e6, (work.seconds(server) - before[1]) / jobs * 1e6)


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
