"""Dead jobs by their cause: the task, and the name of the error, which is the reason up to its first colon."""

from collections.abc import Iterable
from typing import NamedTuple

from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.queues.jobs import job
from redis_kit.queues.jobs.job import Cause, JobInfo, cause
from redis_kit.queues.store import manage


class Group(NamedTuple):
    """How many jobs died of the same, and the last of them."""

    cause: Cause
    jobs: int
    latest: JobInfo


def groups(jobs: Iterable[JobInfo]) -> list[Group]:
    """Return the groups of jobs given from the latest to the oldest, the largest group first."""
    found: dict[Cause, Group] = {}
    for one in jobs:
        its = cause(one)
        known = found.get(its, Group(its, 0, one))
        found[its] = known._replace(jobs=known.jobs + 1)
    return sorted(found.values(), key=lambda group: -group.jobs)


def latest(queue: Primitive) -> Flow[list[Group]]:
    """Return the groups of the latest 1000 dead jobs. One round trip."""
    return groups(job.stored("dead", (yield manage.heads_step(queue, manage.PAGE))))
