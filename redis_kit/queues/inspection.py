"""What the dashboard looks at beyond numbers: one job, and what dead ones died of. One round trip for both."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.queues import deaths, examining, job
from redis_kit.queues.deaths import Group
from redis_kit.queues.examining import Known
from redis_kit.queues.queue import Queue

MOST = 1000  # dead jobs looked at


class Findings(NamedTuple):
    """What is known of the job looked for, the groups with their queues, and of how many dead jobs they are."""

    known: Known | None
    groups: list[tuple[str, Group]]
    looked_at: int


def inspect(
    dead: Mapping[str, int], wanted: tuple[str, str] | None = None, errors: dict[str, RedisFailure] | None = None
) -> Findings:
    """Look at dead jobs, given their number by queue, and at the job of a queue and an id. Raises InvalidValue.

    ``errors``, where given, takes those of queues whose dead jobs can't be read.
    """
    names = [name for name, count in dead.items() if count]
    if not names and not wanted:
        return Findings(None, [], 0)
    found: Findings = Queue(names[0] if names else wanted[0])._run(_inspect(names, wanted, errors))  # type: ignore[index]
    return found


def _inspect(
    names: Sequence[str], wanted: tuple[str, str] | None, errors: dict[str, RedisFailure] | None
) -> Flow[Findings]:
    share = len(names)
    steps: list[Any] = [deaths.heads_step(Queue(name), max(1, MOST // share), share=share) for name in names]
    if wanted:
        steps += examining.steps(Queue(wanted[0]), wanted[1])
    replies = yield Batch(steps, lenient=True)
    for wrong in replies[share if errors is not None else 0 :]:
        if isinstance(wrong, RedisFailure):
            raise wrong
    one = examining.known(*replies[share:]) if wanted else None
    groups, looked_at = [], 0
    for name, reply in zip(names, replies[:share], strict=True):
        if errors is not None and isinstance(reply, RedisFailure):
            errors[name] = reply
            continue
        jobs = job.stored("dead", reply)
        looked_at += len(jobs)
        groups += [(name, group) for group in deaths.groups(jobs)]
    return Findings(one, sorted(groups, key=lambda pair: -pair[1].jobs), looked_at)
