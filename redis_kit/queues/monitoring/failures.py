"""Dead jobs by their cause: the task, and the name of the error, which is the reason up to its first colon."""

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues.jobs import job
from redis_kit.queues.jobs.job import StoredJob
from redis_kit.queues.store import manage

HEAD = 512  # bytes of a record, among which are its numbers and the name of its task
PAGE = 1000  # jobs in one call
NAME = 100  # characters of an error's name
_TASK = re.compile(rb'\{"task":("(?:[^"\\]|\\.)*")')


class Cause(NamedTuple):
    """What a job died of; ``task`` is "" where it was put without one, ``error`` where nobody said why."""

    task: str
    error: str


class Group(NamedTuple):
    """How many jobs died of the same, and the last of them."""

    cause: Cause
    jobs: int
    latest: StoredJob


def cause(job: StoredJob) -> Cause:
    """Return what a job died of. The first bytes of its body are enough."""
    return Cause(task_of(job.body), job.reason.partition(":")[0].strip()[:NAME])


def task_of(body: bytes) -> str:
    """Return the name of the task that a body, or its beginning, names first; "" where it names none."""
    try:
        return str(json.loads(begun[1])) if (begun := _TASK.match(body)) else ""
    except ValueError:
        return ""


def groups(jobs: Iterable[StoredJob]) -> list[Group]:
    """Return the groups of jobs given from the latest to the oldest, the largest group first."""
    found: dict[Cause, Group] = {}
    for one in jobs:
        its = cause(one)
        known = found.get(its, Group(its, 0, one))
        found[its] = known._replace(jobs=known.jobs + 1)
    return sorted(found.values(), key=lambda group: -group.jobs)


def heads_step(queue: Primitive, limit: int, *, offset: int = 0, share: int = 1) -> ScriptCall:
    """Return the step that looks at dead jobs, the latest first, as far as cause() needs them."""
    return manage.peek_step(queue, limit, "dead", offset=offset, cut=HEAD, share=share)


def latest(queue: Primitive) -> Flow[list[Group]]:
    """Return the groups of the latest 1000 dead jobs. One round trip."""
    return groups(job.stored("dead", (yield heads_step(queue, PAGE))))


def requeue(
    queue: Primitive, *, task: str | None = None, error: str | None = None, limit: int | None = None
) -> Flow[int]:
    """Make those ready that died of this, the oldest first. A round trip for 1000 looked at, and for 500 moved."""
    ids = yield from _ids(queue, task, error)
    return (yield from manage.requeue(queue, ids[:limit]))


def _ids(queue: Primitive, task: str | None, error: str | None) -> Flow[list[str]]:
    found: dict[str, None] = {}  # a job that dies meanwhile shifts the others, so that one may be seen twice
    offset = 0
    while jobs := job.stored("dead", (yield heads_step(queue, PAGE, offset=offset))):
        offset += len(jobs)
        for one in jobs:
            its = cause(one)
            if task in (None, its.task) and error in (None, its.error):
                found[one.id] = None
    return list(reversed(found))
