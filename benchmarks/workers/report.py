"""Tables of what was measured, and whether it is what the kit aims at."""

from typing import NamedTuple

from benchmarks.workers.drain import Result
from benchmarks.workers.server import median
from benchmarks.workers.starting import Delays


class Goal(NamedTuple):
    """What was measured beside what it should be."""

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
    """Print jobs a second and the ratio to a PING of the same round."""
    print(f"{'drain':40}{'processes':>10}{'jobs':>8}{'jobs/s':>9}{'x PING':>8}{'lowest':>8}{'highest':>8}")
    for result in results:
        ratios = [one.ratio for one in result.rounds]
        print(f"{result.contestant.title:40}{result.processes:10}{result.filled.count:8,}{result.rate:9,.0f}", end="")
        print(f"{result.ratio:8.2f}{min(ratios):8.2f}{max(ratios):8.2f}")
        lost, repeated = (max(getattr(one, name) for one in result.rounds) for name in ("lost", "repeated"))
        if lost or repeated:
            print(f"{'':4}LOST {lost} jobs, did {repeated} twice")
    pings = median([one.pings for result in results for one in result.rounds])
    print(f"{'PING by redis-py, round trips/s':58}{pings:9,.0f}\n")


def show_delays(title: str, rounds: list[Delays]) -> None:
    """Print the rounds of a delay."""
    print(f"{title:66}{'p50':>8}{'p99':>8}{'longest':>9}")
    for one in rounds:
        print(f"{'':66}{one.p50:8.2f}{one.p99:8.2f}{one.longest:9.2f}")
    print()
