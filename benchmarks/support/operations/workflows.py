"""Workflows: what a step costs beside a task of its own, with the enqueueing, the claim and the end of each."""

from benchmarks.support.server_cost import Operations, Part
from benchmarks.support.workers.server import Server
from redis_kit.queues import chain, group, task
from redis_kit.testing.jobs import drain

STEPS = 100
TASKS, CHAIN, GROUP = f"kit: {STEPS} tasks", f"kit: chain of {STEPS}", f"kit: group of {STEPS} with a callback"


@task
def nothing(number: int) -> None:
    """Do nothing."""


def workflows(server: Server) -> Part:
    """Return tasks, a chain and a group, each from its enqueueing to its end."""
    operations: Operations = {TASKS: tasks, CHAIN: in_a_row, GROUP: side_by_side}
    return Part(f"workflows, per step, {STEPS} steps", operations, worth=STEPS)


def tasks() -> None:
    """Enqueue tasks, and run them."""
    for number in range(STEPS):
        nothing.enqueue(number)
    drain()


def in_a_row() -> None:
    """Enqueue a chain, and run it."""
    chain(*(nothing.step(number) for number in range(STEPS))).enqueue()
    drain()


def side_by_side() -> None:
    """Enqueue a group with a callback, and run it."""
    group(nothing.step(number) for number in range(STEPS)).on_done(nothing.step(0)).enqueue()
    drain()
