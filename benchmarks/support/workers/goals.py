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
        ratios = [one.ratio for one in result.rounds]
        print(f"{result.setup.title:36}{result.processes:10}{result.filled.count:8,}{result.rate:9,.0f}", end="")
        print(f"{result.ratio:8.2f}{min(ratios):8.2f}{max(ratios):8.2f}{result.thrift:9.2f}", end="")
        worker, server = (median([getattr(one.work, who) for one in result.rounds]) for who in ("worker", "server"))
        print(f"{worker:11.1f}{server:11.1f}")
        lost, repeated = (max(getattr(one, name) for one in result.rounds) for name in ("lost", "repeated"))
        if lost or repeated:
            print(f"{'':4}LOST {lost} jobs, did {repeated} twice")
    pings = [one.pings for result in results for one in result.rounds]
    print(f"{'PING by redis-py, round trips/s':54}{median([one.rate for one in pings]):9,.0f}{'':33}", end="")
    print(f"{median([one.work for one in pings]):22.1f} us\n")


def show_delays(title: str, rounds: list[Delays]) -> None:
    """Print the delays of all rounds."""
    print(f"{title:66}{'p50':>8}{'p99':>8}{'longest':>9}")
    for one in rounds:
        print(f"{'':66}{one.p50:8.2f}{one.p99:8.2f}{one.longest:9.2f}")
    print()
