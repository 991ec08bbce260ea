"""What the dashboard looks at beyond numbers: one job, or what dead ones died of. One round trip each."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.queues.jobs import job
from redis_kit.queues.monitoring import failures, lookup
from redis_kit.queues.monitoring.failures import Group
from redis_kit.queues.monitoring.lookup import Known
from redis_kit.queues.queue import Queue
from redis_kit.queues.store import manage

MOST = 1000  # dead jobs looked at


class Findings(NamedTuple):
    """Groups of dead jobs with their queues, and of how many dead jobs they are."""

    groups: list[tuple[str, Group]]
    looked_at: int


def inspect(dead: Mapping[str, int], errors: dict[str, RedisFailure]) -> Findings:
    """Look at dead jobs, given their number by queue; ``errors`` takes those of queues that can't be read."""
    names = [name for name, count in dead.items() if count]
    if not names:
        return Findings([], 0)
    found: Findings = Queue(names[0]).run_flow(_inspect(names, errors))
    return found


def look_up(queues: Sequence[str], id: str) -> tuple[str, Known | None]:
    """Look for a job in these queues: return the first that knows it, else the first, and what is known.

    Raises InvalidName and InvalidValue.
    """
    found: tuple[str, Known | None] = Queue(queues[0]).run_flow(_look_up(queues, id))
    return found


def _look_up(queues: Sequence[str], id: str) -> Flow[tuple[str, Known | None]]:
    replies = yield Batch([step for name in queues for step in lookup.steps(Queue(name), id)])
    found = zip(queues, map(lookup.known, replies[::2], replies[1::2]), strict=True)
    return next((pair for pair in found if pair[1]), (queues[0], None))


def _inspect(names: Sequence[str], errors: dict[str, RedisFailure]) -> Flow[Findings]:
    share = len(names)
    steps = [manage.heads_step(Queue(name), max(1, MOST // share), share=share) for name in names]
    replies = yield Batch(steps, lenient=True)
    groups, looked_at = [], 0
    for name, reply in zip(names, replies, strict=True):
        if isinstance(reply, RedisFailure):
            errors[name] = reply
            continue
        jobs = job.stored("dead", reply)
        looked_at += len(jobs)
        groups += [(name, group) for group in failures.groups(jobs)]
    return Findings(sorted(groups, key=lambda pair: -pair[1].jobs), looked_at)
