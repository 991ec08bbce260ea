"""Dead jobs by their cause: the task and the name of the error, which is the reason up to its first colon."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow, single
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch
from redis_kit.queues.engine.job import Cause, JobInfo, cause
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.management import manage
from redis_kit.queues.queue import Queue, over

MOST = 1000  # dead jobs looked at


class Group(NamedTuple):
    """The dead jobs of one cause that were read: their number, and the latest and the first of them."""

    cause: Cause
    jobs: int
    latest: JobInfo
    first: JobInfo


def groups(jobs: Iterable[JobInfo]) -> list[Group]:
    """Return the groups of jobs given from the latest to the oldest, the largest group first."""
    groups: dict[Cause, Group] = {}
    for dead in jobs:
        reason = cause(dead)
        group = groups.get(reason, Group(reason, 0, dead, dead))
        groups[reason] = group._replace(jobs=group.jobs + 1, first=dead)
    return sorted(groups.values(), key=lambda group: -group.jobs)


def latest(queue: Primitive) -> Flow[list[Group]]:
    """Return the groups of the latest 1000 dead jobs. One round trip."""
    replies = yield from spread().each(queue, lambda part: single(manage.heads_step(part, manage.PAGE)))
    return groups(manage.merged("dead", [manage.page("dead", reply) for reply in replies], manage.PAGE))


class Findings(NamedTuple):
    """Groups of dead jobs with their queues, and how many dead jobs were read."""

    groups: list[tuple[str, Group]]
    looked_at: int


def inspect(dead: Mapping[str, int], errors: dict[str, RedisFailure]) -> Findings:
    """Group the latest dead jobs of queues, given their number by queue. One round trip.

    The error of a queue that can't be read is stored in ``errors``.
    """
    names = [name for name, count in dead.items() if count]
    return over("default").run_flow(_inspect(names, errors)) if names else Findings([], 0)


def _inspect(names: Sequence[str], errors: dict[str, RedisFailure]) -> Flow[Findings]:
    existing = yield from spread().existing(names)
    places = [(name, shard) for name in names for shard in existing[name]]
    share = len(places)
    steps = [manage.heads_step(Queue(shard), max(1, MOST // share), share=share) for _, shard in places]
    replies = yield Batch(steps, lenient=True)
    by_queue: dict[str, list[list[JobInfo]]] = {}
    for (name, _), reply in zip(places, replies, strict=True):
        if isinstance(reply, RedisFailure):
            errors[name] = reply
        else:
            by_queue.setdefault(name, []).append(manage.page("dead", reply))
    jobs = {name: manage.merged("dead", several, MOST) for name, several in by_queue.items()}
    rows = [(name, group) for name, found in jobs.items() for group in groups(found)]
    return Findings(sorted(rows, key=lambda pair: -pair[1].jobs), sum(map(len, jobs.values())))
