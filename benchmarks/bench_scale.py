"""The cost of one job, lock, decision, view and sign-in, and from there the machines for a million a second."""

from benchmarks.support.scale import BUSY, UnitCost, need, total
from benchmarks.support.workers.server import on_tcp

MILLION, BILLION = 1e6, 1e9


def run() -> None:
    """Print the unit costs, then what large loads need."""
    with on_tcp(one_core=True) as server:
        from benchmarks.support.unit_costs import unit_costs  # needs Django's settings

        costs = unit_costs(server)
    print(f"{'':36}{'server us':>10}{'client us':>10}{'network B':>10}{'stored B':>10}")
    for name, cost in costs.items():
        stored = f"{cost.stored:10,.0f}" if cost.stored else f"{'-':>10}"
        print(f"{name:36}{cost.server:10.1f}{cost.client:10.1f}{cost.network:10,.0f}{stored}")
    print(f"\n{f'Nodes and client cores are {BUSY:.0%} busy':42}{'nodes':>7}{'cores':>7}{'Gbit/s':>8}{'GB':>8}")
    for title, cost, a_second, things in _loads(costs):
        nodes, clients, gigabits, gigabytes = need(cost, a_second, things)
        print(f"{title:42}{nodes:7,}{clients:7,}{gigabits:8.1f}{gigabytes:8,.1f}")
    print()


def _loads(costs: dict[str, UnitCost]) -> list[tuple[str, UnitCost, float, float]]:
    _, put, claim, lock, decision, view, sign_in = costs.values()
    return [
        ("10^6 jobs a second, a minute's waiting", total([put, claim]), MILLION, 60 * MILLION),
        ("10^6 locks a second, as many held", lock, MILLION, MILLION),
        ("10^6 decisions a second, 10^9 identities", decision, MILLION, BILLION),
        ("10^6 views a second", view, MILLION, 0),
        ("10^9 users sign in within four hours", sign_in, BILLION / 14_400, BILLION),
    ]
