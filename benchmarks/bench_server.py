"""What each operation costs the server, whose one core all processes share, beside peers that do the same job."""

from collections.abc import Callable
from importlib import import_module

from benchmarks.support.server_cost import Cost, Meter, Part
from benchmarks.support.workers.goals import Goal
from benchmarks.support.workers.server import Server, on_tcp

PARTS = {
    "locks": ("locks",),
    "throttles": ("throttles",),
    "queues": ("queues", "batches"),
    "workflows": ("workflows",),
    "page_views": ("page_views", "view_batches"),
    "sign_ins": ("sign_ins",),
}


def run(words: str = "") -> None:
    """Print the cost of each operation, of the named parts or of all, then the goals."""
    with on_tcp(one_core=True) as server:
        meter, goals = Meter(server), []
        print("Of each operation, without that of bare scripts for its round trips; whole: with it:")
        for name in words.split(",") if words else PARTS:
            for make in _makers(name):
                goals += measured(meter, make(server))
                server.flush()
        for goal in goals:
            print(goal)
        print()


def measured(meter: Meter, part: Part) -> list[Goal]:
    """Print the costs of a part, and return its goals."""
    costs = meter.costs(part.operations, worth=part.worth)
    print(f"\n{part.title:52}{'user us':>9}{'system us':>11}{'both':>8}{'whole':>8}{'sent':>7}{'run':>7}")
    for name, cost in costs.items():
        print(f"{name:52}{cost.user:9.1f}{cost.system:11.1f}{cost.both:8.1f}{cost.whole:8.1f}", end="")
        print(f"{cost.sent:7.1f}{cost.run:7.1f}")
    return [_goal(costs, *goal, whole=part.whole) for goal in part.goals]


def _makers(name: str) -> list[Callable[[Server], Part]]:
    # Components are imported late: their models need Django's settings, which the server's site configures.
    module = import_module(f"benchmarks.support.operations.{name}")
    return [getattr(module, part) for part in PARTS[name]]


def _goal(costs: dict[str, Cost], name: str, peer: str, most: float, *, whole: bool) -> Goal:
    if whole:
        return Goal(f"{name}, to {peer}, whole calls", costs[name].whole / costs[peer].whole, "<=", most)
    return Goal(f"{name}, to {peer}", costs[name].both / costs[peer].both, "<=", most)
