"""Decisions while the server's connections are killed twenty times a second: no strategy admits too many.

``python -m tests.chaos throttling.killed_connections 1000000`` makes a million decisions with all strategies.
"""

from dataclasses import dataclass

from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import stage
from tests.chaos.throttling.support.processes import ask_from_processes, throttles
from tests.throttling.support.bounds import excess

LIMIT, PERIOD = 50, 100_000  # microseconds
RATES = [(LIMIT, PERIOD / 1_000_000)]
PROCESSES, EVERY = 3, 0.05


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many decisions are made."""

    decisions: int
    tasks: int = 0  # at a time in each process; 0 for sync code


def run(plan):
    """Make decisions while connections are killed."""
    with stage() as place, place.server.client(retry_on_timeout=True) as client:
        kills = []

        def kill(over):
            kills.append(client.client_kill_filter(_type="normal", skipme=True))
            over.wait(EVERY)

        admitted, missed = ask_from_processes(
            place.kit,
            throttles(RATES),
            processes=PROCESSES,
            decisions=-(-plan.decisions // PROCESSES),
            tasks=plan.tasks,
            meanwhile=kill,
        )
    admitted = {name.removesuffix("race"): stamps for name, stamps in admitted.items()}
    counts = {strategy: len(stamps) for strategy, stamps in admitted.items()}
    over = {strategy: excess(strategy, stamps, LIMIT, PERIOD) for strategy, stamps in admitted.items()}
    figures = (
        f"{plan.decisions:,} decisions, {sum(kills):,} connections killed, {missed:,} answered by the failure policy"
    )
    found = {"admitted too many": [f"{strategy}: {count}" for strategy, count in over.items() if count]}
    return Outcome(f"{figures}; admitted: {counts}", found, counts=counts, kills=sum(kills), missed=missed)
