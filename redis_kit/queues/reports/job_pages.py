"""The jobs of queues in one state: page by page, those of a task or an error, and dead ones by their cause.

The cause is the task and the name of the error, which is the reason up to its first colon.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any, NamedTuple

from redis_kit.core.errors import InvalidValue, RedisFailure
from redis_kit.core.flow import Flow, single
from redis_kit.core.gather import gather
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Call
from redis_kit.queues import validation
from redis_kit.queues.engine import job
from redis_kit.queues.engine.done import DoneJob
from redis_kit.queues.engine.job import Cause, JobInfo, QueueCounts, State
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.management import manage
from redis_kit.queues.management.manage import ANY, JobFilter, Page
from redis_kit.queues.queue import Queue, over

LOOKED_THROUGH = 1000  # jobs in one call, for those that match, and dead jobs for their causes
PAGE_BYTES = 4 * 1024 * 1024  # of the jobs of a page
_POSITION = re.compile(rb"(\d{1,2}) ((?:parked|-?\d{1,20}(?:\.\d{1,17})?(?:e[+-]?\d{1,3})?) .+)", re.DOTALL)
_POSITION_OF_DONE = re.compile(rb"(\d{1,2}) (\d{1,19}-\d{1,19})")
LISTED_THROUGH = 10_000  # jobs of a state, for those of a task or with a tag


class TextFilter(JobFilter):
    """Jobs with these texts in the name of the task and in the reason of their death, and with this tag; "" for any.

    The case of letters makes no difference.
    """

    def fits(self, task: str, reason: str, tags: Sequence[str]) -> bool:
        """See JobFilter."""
        text, error, tag = ((text or "").casefold() for text in self)
        in_texts = text in task.casefold() and error in reason.casefold()
        return in_texts and (not tag or tag in map(str.casefold, tags))


class Group(NamedTuple):
    """The dead jobs of one cause that were read: their number, and the latest and the first of them."""

    cause: Cause
    jobs: int
    latest: JobInfo
    first: JobInfo


class JobPage(NamedTuple):
    """A page of jobs. ``cursor`` is that of the next page, "" on the last one.

    ``done`` is how many done jobs are kept, ``looked_at`` how many jobs were looked at for the page, and ``groups`` are
    the latest dead jobs by their cause.
    """

    counts: QueueCounts
    done: int
    jobs: Sequence[JobInfo | DoneJob]
    looked_at: int
    cursor: str
    groups: list[Group]


def job_page(
    queue: Primitive, state: State, *, cursor: str = "", wanted: JobFilter = ANY, limit: int = 50
) -> Flow[JobPage]:
    """Return a page of jobs in the order of peek(), done ones from the latest; of a queue with shards shard by shard.

    Their bodies are cut to what task_of() needs. A page with a filter looks at 1000 jobs, so it may be empty and not
    the last one. One round trip, two if the settings name SHARDS. Raises InvalidValue for a wrong cursor.
    """
    validation.one_of("state", state, (*manage.STATES, "done"))
    first, after = _position(cursor, state)
    names = (yield from spread().existing([queue.name]))[queue.name]
    parts = [Queue(name, using=queue.using) for name in names]
    size, share = LOOKED_THROUGH if any(wanted) else limit, len(parts)
    most_bytes = PAGE_BYTES // share
    flows: list[Flow[Any]] = [
        gather([manage.counts(part) for part in parts]),
        gather([single(Call("XLEN", part.key("done"))) for part in parts]),
        gather([_heads(part, share) for part in parts if state == "dead"]),
        *(
            manage.read(part, state, size, after=place, most_bytes=most_bytes)
            for part, place in zip(parts[first:], chain([after], repeat(b"")), strict=False)
        ),
    ]
    counted, lengths, dead, *pages = yield from gather(flows)
    counts, done = job.summed(counted), sum(lengths)
    causes = groups(manage.merged("dead", [page.jobs for page in dead], LOOKED_THROUGH))
    jobs: list[JobInfo | DoneJob] = []
    looked_at = 0
    for number, page in enumerate(pages, start=first):
        for place, info in zip(page.places, page.jobs, strict=True):
            looked_at += 1
            if wanted.matches(info):
                jobs.append(info)
            if len(jobs) == limit:
                return JobPage(counts, done, jobs, looked_at, _cursor(number, place), causes)
        if page.rest:
            return JobPage(counts, done, jobs, looked_at, _cursor(number, page.rest), causes)
    return JobPage(counts, done, jobs, looked_at, "", causes)


def _cursor(shard: int, place: bytes) -> str:
    return (b"%d %b" % (shard, place)).hex()


def _position(cursor: str, state: State) -> tuple[int, bytes]:
    pattern = _POSITION_OF_DONE if state == "done" else _POSITION
    try:
        match = pattern.fullmatch(bytes.fromhex(cursor)) if cursor else None
    except ValueError:
        match = None
    if cursor and not match:
        raise InvalidValue("The cursor of a page is that of the page before it, unchanged.")
    return (int(match[1]), match[2]) if match else (0, b"")


def first_jobs(queue: Primitive, state: State, limit: int, wanted: JobFilter = ANY) -> Flow[list[Any]]:
    """Return the first ``limit`` jobs of a state in the order of peek(), or those among them that match.

    Done ones come from the latest. Bodies are cut to what task_of() and tags_of() need. One round trip; with a filter
    one for each 1000 jobs of another state than done, at most 10.
    """
    by_part = yield from spread().each(
        queue, partial(manage.find, state=state, wanted=wanted, limit=limit, most=LISTED_THROUGH)
    )
    return manage.merged(state, by_part, limit)


def groups(jobs: Iterable[JobInfo]) -> list[Group]:
    """Return the groups of jobs given from the latest to the oldest, the largest group first."""
    by_cause: dict[Cause, Group] = {}
    for dead in jobs:
        cause = job.cause(dead)
        group = by_cause.get(cause, Group(cause, 0, dead, dead))
        by_cause[cause] = group._replace(jobs=group.jobs + 1, first=dead)
    return sorted(by_cause.values(), key=lambda group: -group.jobs)


def dead_by_cause(queues: Sequence[str], errors: dict[str, RedisFailure] | None = None) -> list[tuple[str, Group]]:
    """Return the groups of the latest 1000 dead jobs of queues, with their queues. One round trip.

    The error of a queue that can't be read is stored in ``errors``; without it the error is raised.
    """
    return over("default").run_flow(_dead_by_cause(queues, errors)) if queues else []


def _dead_by_cause(names: Sequence[str], errors: dict[str, RedisFailure] | None) -> Flow[list[tuple[str, Group]]]:
    existing = yield from spread().existing(names)
    places = [(name, shard) for name in names for shard in existing[name]]
    reading = [_heads(Queue(shard), len(places)) for _, shard in places]
    pages = yield from gather(reading, return_exceptions=True)
    by_queue: dict[str, list[list[JobInfo]]] = {}
    for (name, _), page in zip(places, pages, strict=True):
        if not isinstance(page, Exception):
            by_queue.setdefault(name, []).append(page.jobs)
        elif errors is not None and isinstance(page, RedisFailure):
            errors[name] = page
        else:
            raise page
    by_cause = {name: groups(manage.merged("dead", several, LOOKED_THROUGH)) for name, several in by_queue.items()}
    rows = [(name, group) for name, found in by_cause.items() for group in found]
    return sorted(rows, key=lambda row: -row[1].jobs)


def _heads(queue: Primitive, share: int) -> Flow[Page]:
    """Read the latest dead jobs of one part of queues that are ``share`` parts together."""
    return manage.read(queue, "dead", max(1, LOOKED_THROUGH // share), most_bytes=manage.MOST_BYTES // share)
