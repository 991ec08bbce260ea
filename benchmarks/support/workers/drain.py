"""The drain of a filled queue: jobs a second from the first 5 % to the last job, without the start-up."""

from pathlib import Path
from typing import NamedTuple

from benchmarks.support.workers import cpu_time
from benchmarks.support.workers.processes import tail
from benchmarks.support.workers.server import Pings, Server, median
from benchmarks.support.workers.testbed import Failed, Filled, Setup, TestBed

SHARE = 0.05
TRIAL = 300  # jobs, to choose the size of a round
SECONDS = 2.0
FEWEST, MOST = 400, 60_000
LIMIT = 40.0  # seconds


class Work(NamedTuple):
    """Processor time per job, us."""

    worker: float
    server: float


class Drained(NamedTuple):
    """The results of one round."""

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
        """Return the processor time of a round trip divided by a job's: the ratio on one core without noise."""
        return self.pings.work / (self.work.worker + self.work.server) if self.pings.work else 0.0


class Result(NamedTuple):
    """The results of all rounds of one setup."""

    setup: Setup
    processes: int
    filled: Filled
    rounds: list[Drained]

    @property
    def rate(self) -> float:
        """Return the median of jobs a second."""
        return median([drained.rate for drained in self.rounds])

    @property
    def ratio(self) -> float:
        """Return the median of the ratios to a round trip."""
        return median([drained.ratio for drained in self.rounds])

    @property
    def thrift(self) -> float:
        """Return the median of the ratios of processor time."""
        return median([drained.thrift for drained in self.rounds])


def drain(bed: TestBed, filled: Filled, processes: int = 1) -> Drained:
    """Restore the queue and let workers drain it."""
    bed.restore(filled)
    before = bed.server.pings()
    with bed.workers(processes) as pids:
        spent = _watched(bed, filled.count, pids)
    pings = Pings(*(median([*pair]) for pair in zip(before, bed.server.pings(), strict=True)))
    bed.job_log.collect()
    numbers, times = [number for number, _ in bed.job_log.notes], bed.job_log.times()[: filled.count]
    first = int(filled.count * SHARE)
    if len(times) < filled.count * 0.5:
        raise Failed(f"{bed.setup.title}: {len(times)} of {filled.count} jobs within {LIMIT:g} s\n{tail(bed.log)}")
    rate = (len(times) - first - 1) / (times[-1] - times[first]) * 1e9
    lost = filled.count - len(set(numbers))
    return Drained(rate, pings, spent, lost, len(numbers) - len(set(numbers)))


def _watched(bed: TestBed, count: int, pids: list[int]) -> Work:
    bed.wait(int(count * SHARE) + 1, seconds=LIMIT)
    pids, server = cpu_time.sessions(pids), [bed.server.pid]
    begun, before = len(bed.job_log.notes), (cpu_time.seconds(pids), cpu_time.seconds(server))
    bed.wait(count, seconds=LIMIT)
    jobs = max(1, len(bed.job_log.notes) - begun)
    return Work((cpu_time.seconds(pids) - before[0]) / jobs * 1e6, (cpu_time.seconds(server) - before[1]) / jobs * 1e6)


def trial(bed: TestBed) -> int:
    """Return the number of jobs that a round of some seconds needs."""
    filled = bed.fill(TRIAL)
    return max(FEWEST, min(MOST, int(drain(bed, filled).rate * SECONDS)))


def side_by_side(server: Server, setups: list[tuple[Setup, int]], folder: Path, *, rounds: int = 3) -> list[Result]:
    """Drain each setup in turn, round after round; its number is that of its processes."""
    beds: dict[Setup, tuple[TestBed, Filled]] = {}
    for setup, _ in setups:
        if setup not in beds:
            place = folder / f"{setup.peer}-{setup.variant}"
            place.mkdir(exist_ok=True)
            bed = TestBed(server, setup, place)
            beds[setup] = bed, bed.fill(trial(bed))
    results = [Result(setup, processes, beds[setup][1], []) for setup, processes in setups]
    for _ in range(rounds):
        for result in results:
            result.rounds.append(drain(*beds[result.setup], result.processes))
    return results
