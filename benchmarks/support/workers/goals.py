"""Tables of results, and the goals of the kit."""

from typing import NamedTuple

from benchmarks.support.workers.drain import Result
from benchmarks.support.workers.latency import Delays
from benchmarks.support.workers.server import median


class Goal(NamedTuple):
    """A measured value and its goal."""

    name: str
    measured: float
    sense: str  # <= or >=
    wanted: float

    def __str__(self) -> str:
        """Return its line."""
        met = self.measured <= self.wanted if self.sense == "<=" else self.measured >= self.wanted
        goal = f"{self.sense} {self.wanted:g}"
        return f"{'ok   ' if met else 'SHORT'} {self.name:64}{self.measured:12,.2f}{goal:>11}"


def show_drains(results: list[Result]) -> None:
    """Print jobs a second, the ratio to a PING of the same round, and the same ratio by processor time."""
    print(f"{'drain':36}{'processes':>10}{'jobs':>8}{'jobs/s':>9}{'x PING':>8}{'lowest':>8}{'highest':>8}", end="")
    print(f"{'by work':>9}{'worker us':>11}{'server us':>11}")
    for result in results:
        ratios = [drained.ratio for drained in result.rounds]
        print(f"{result.setup.title:36}{result.processes:10}{result.filled.count:8,}{result.rate:9,.0f}", end="")
        print(f"{result.ratio:8.2f}{min(ratios):8.2f}{max(ratios):8.2f}{result.thrift:9.2f}", end="")
        worker, server = (
            median([getattr(drained.work, part) for drained in result.rounds]) for part in ("worker", "server")
        )
        print(f"{worker:11.1f}{server:11.1f}")
        lost, repeated = (max(getattr(drained, name) for drained in result.rounds) for name in ("lost", "repeated"))
        if lost or repeated:
            print(f"{'':4}LOST {lost} jobs, did {repeated} twice")
    pings = [drained.pings for result in results for drained in result.rounds]
    print(f"{'PING by redis-py, round trips/s':54}{median([drained.rate for drained in pings]):9,.0f}{'':33}", end="")
    print(f"{median([drained.work for drained in pings]):22.1f} us\n")


def show_delays(title: str, rounds: list[Delays]) -> None:
    """Print the delays of all rounds."""
    print(f"{title:66}{'p50':>8}{'p99':>8}{'longest':>9}")
    for delays in rounds:
        print(f"{'':66}{delays.p50:8.2f}{delays.p99:8.2f}{delays.longest:9.2f}")
    print()
