"""The jobs of a queue in one state, page by page, and those among them of a task or an error."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch
from redis_kit.queues import validation
from redis_kit.queues.jobs import job
from redis_kit.queues.jobs.job import JobInfo, QueueCounts, State
from redis_kit.queues.jobs.message import task_of
from redis_kit.queues.monitoring import failures
from redis_kit.queues.monitoring.failures import Group
from redis_kit.queues.store import calls, manage, shards

LOOKED_THROUGH = 1000  # jobs in one call, for those that match
MOST_BYTES = 4 * 1024 * 1024  # of records that one call reads
ROUNDS = 10  # calls of all_matching()
_POSITION = re.compile(rb"(\d{1,2}) ((?:parked|-?\d{1,20}(?:\.\d{1,17})?(?:e[+-]?\d{1,3})?) .+)?", re.DOTALL)


class JobFilter(NamedTuple):
    """Which jobs of a state: those with this text in the name of their task, and this one in the reason of their death.

    The case of letters makes no difference; "" is in all.
    """

    task: str = ""
    error: str = ""

    def matches(self, info: JobInfo) -> bool:
        """Return whether a job is one of them. The first bytes of its body are enough."""
        in_task = self.task.casefold() in task_of(info.body).casefold()
        return in_task and (not self.error or self.error.casefold() in info.reason.casefold())


ALL = JobFilter()


class JobPage(NamedTuple):
    """A page of jobs. ``cursor`` is that of the next page, "" on the last one.

    ``looked_at`` is how many jobs were looked at for it, ``groups`` the latest dead jobs by their cause.
    """

    counts: QueueCounts
    jobs: list[JobInfo]
    looked_at: int
    cursor: str
    groups: list[Group]


def job_page(
    queue: Primitive, state: State, *, cursor: str = "", wanted: JobFilter = ALL, limit: int = 50
) -> Flow[JobPage]:
    """Return a page of jobs in the order of peek(), of a queue with shards one shard after the other.

    Their bodies are cut to what task_of() needs. A page with a filter looks at 1000 jobs, so it may be empty and not
    the last one. One round trip, two if the settings name SHARDS. Raises InvalidValue for a wrong cursor.
    """
    validation.one_of("state", state, manage.STATES)
    first, after = _position(cursor)
    names = (yield from shards.existing([queue.name]))[queue.name]
    most = LOOKED_THROUGH if any(wanted) else limit
    parts = [shards.shard(queue, name) for name in names]
    pages = [
        _step(part, state, after if number == first else b"", most if number >= first else 1, len(parts))
        for number, part in enumerate(parts)
    ]
    heads = [manage.heads_step(part, failures.MOST // len(parts), share=len(parts)) for part in parts]
    replies = yield Batch([*pages, *heads] if state == "dead" else pages)
    counts = shards.summed([QueueCounts(*reply[:4]) for reply in replies[: len(parts)]])
    dead = [job.stored("dead", reply) for reply in replies[len(parts) :]]
    groups = failures.groups(manage.merged("dead", dead, failures.MOST)) if dead else []
    chosen: list[JobInfo] = []
    looked_at = 0
    for number, place, info in _jobs(state, first, most, replies[: len(parts)]):
        if info is None:
            return JobPage(counts, chosen, looked_at, _cursor(number, place), groups)
        looked_at += 1
        if wanted.matches(info):
            chosen.append(info)
        if len(chosen) == limit:
            return JobPage(counts, chosen, looked_at, _cursor(number, place), groups)
    return JobPage(counts, chosen, looked_at, "", groups)


def all_matching(queue: Primitive, state: State, wanted: JobFilter, limit: int) -> Flow[list[JobInfo]]:
    """Return the first ``limit`` jobs that match, of 10,000 of each state. A round trip for each 1000."""
    jobs: list[JobInfo] = []
    cursor = ""
    for _ in range(ROUNDS):
        page = yield from job_page(queue, state, cursor=cursor, wanted=wanted, limit=limit - len(jobs))
        jobs += page.jobs
        cursor = page.cursor
        if not cursor or len(jobs) == limit:
            break
    return jobs


def _step(queue: Primitive, state: State, after: bytes, limit: int, share: int) -> Any:
    return calls.LIST_JOBS(queue.key(""), state, after, limit, manage.HEAD, MOST_BYTES // share)


def _jobs(
    state: State, first: int, most: int, replies: Sequence[list[Any]]
) -> Iterator[tuple[int, bytes, JobInfo | None]]:
    """Yield the jobs with their shards and places; None where the rest of a shard was not read."""
    for number, reply in enumerate(replies):
        if number >= first:
            places, jobs = reply[4], job.stored(state, reply[5])
            for place, info in zip(places, jobs, strict=False):
                yield number, place, info
            if jobs and (len(places) == most or len(jobs) < len(places)):
                yield number, places[len(jobs) - 1], None


def _cursor(shard: int, place: bytes) -> str:
    return (b"%d %b" % (shard, place)).hex()


def _position(cursor: str) -> tuple[int, bytes]:
    try:
        match = _POSITION.fullmatch(bytes.fromhex(cursor)) if cursor else None
    except ValueError:
        match = None
    if cursor and not match:
        raise InvalidValue("The cursor of a page is that of the page before it, unchanged.")
    return (int(match[1]), match[2] or b"") if match else (0, b"")
