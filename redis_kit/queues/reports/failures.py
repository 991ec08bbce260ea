"""Dead jobs by their cause: the task and the name of the error, which is the reason up to its first colon."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.primitive import Primitive
from redis_kit.queues.engine.job import Cause, JobInfo, cause
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.management import manage
from redis_kit.queues.management.manage import Page
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


def inspect(queues: Sequence[str], errors: dict[str, RedisFailure] | None = None) -> list[tuple[str, Group]]:
    """Return the groups of the latest dead jobs of queues, with their queues. One round trip.

    The error of a queue that can't be read is stored in ``errors``; without it the error is raised.
    """
    return over("default").run_flow(_inspect(queues, errors)) if queues else []


def _inspect(names: Sequence[str], errors: dict[str, RedisFailure] | None) -> Flow[list[tuple[str, Group]]]:
    existing = yield from spread().existing(names)
    places = [(name, shard) for name in names for shard in existing[name]]
    reading = [heads(Queue(shard), len(places)) for _, shard in places]
    pages = yield from gather(reading, return_exceptions=True)
    by_queue: dict[str, list[list[JobInfo]]] = {}
    for (name, _), page in zip(places, pages, strict=True):
        if not isinstance(page, Exception):
            by_queue.setdefault(name, []).append(page.jobs)
        elif errors is not None and isinstance(page, RedisFailure):
            errors[name] = page
        else:
            raise page
    by_cause = {name: groups(manage.merged("dead", several, MOST)) for name, several in by_queue.items()}
    rows = [(name, group) for name, found in by_cause.items() for group in found]
    return sorted(rows, key=lambda row: -row[1].jobs)


def heads(queue: Primitive, share: int) -> Flow[Page]:
    """Read the latest dead jobs of one part of queues that are ``share`` parts together."""
    return manage.read(queue, "dead", max(1, MOST // share), share=share)
