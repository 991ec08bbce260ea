"""The jobs of a queue in one state, page by page, and those among them of a task or an error."""

import re
from collections.abc import Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any, NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call
from redis_kit.queues import validation
from redis_kit.queues.engine import done as done_jobs
from redis_kit.queues.engine import job
from redis_kit.queues.engine.done import DoneJob
from redis_kit.queues.engine.job import JobInfo, QueueCounts, State
from redis_kit.queues.engine.message import tags_of, task_of
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.management import manage
from redis_kit.queues.management.manage import ANY, Wanted
from redis_kit.queues.queue import Queue
from redis_kit.queues.reports import failures
from redis_kit.queues.reports.failures import Group

DONE: State = "done"
LOOKED_THROUGH = 1000  # jobs in one call, for those that match
MOST_BYTES = 4 * 1024 * 1024  # of records that one call reads
ROUNDS = 10  # calls of all_matching()
_POSITION = re.compile(rb"(\d{1,2}) ((?:parked|-?\d{1,20}(?:\.\d{1,17})?(?:e[+-]?\d{1,3})?) .+)", re.DOTALL)
_POSITION_OF_DONE = re.compile(rb"(\d{1,2}) (\d{1,19}-\d{1,19})")
LISTED_THROUGH = 10_000  # jobs of a state, for those of a task or with a tag


class JobFilter(NamedTuple):
    """Which jobs of a state: those with this text in the name of their task, this one in the reason of their death, and
    this tag.

    The case of letters makes no difference; "" is in all.
    """

    task: str = ""
    error: str = ""
    tag: str = ""

    def matches(self, info: JobInfo | DoneJob) -> bool:
        """Return whether a job is one of them. The first bytes of its body are enough."""
        if isinstance(info, DoneJob):
            return self._fits(info.task, "", info.tags)
        return self._fits(task_of(info.body), info.reason, tags_of(info.body))

    def _fits(self, task: str, reason: str, tags: Sequence[str]) -> bool:
        in_texts = self.task.casefold() in task.casefold() and self.error.casefold() in reason.casefold()
        return in_texts and (not self.tag or self.tag.casefold() in map(str.casefold, tags))


ALL = JobFilter()


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
    queue: Primitive, state: State, *, cursor: str = "", wanted: JobFilter = ALL, limit: int = 50
) -> Flow[JobPage]:
    """Return a page of jobs in the order of peek(), done ones from the latest; of a queue with shards shard by shard.

    Their bodies are cut to what task_of() needs. A page with a filter looks at 1000 jobs, so it may be empty and not
    the last one. One round trip, two if the settings name SHARDS. Raises InvalidValue for a wrong cursor.
    """
    validation.one_of("state", state, (*manage.STATES, DONE))
    first, after = _position(cursor, state)
    names = (yield from spread().existing([queue.name]))[queue.name]
    parts = [Queue(name, using=queue.using) for name in names]
    size, share = LOOKED_THROUGH if any(wanted) else limit, len(parts)
    reading = [
        _read_done(part, begin, size) if state == DONE else _read(part, state, begin, size, share)
        for part, begin in zip(parts[first:], chain([after], repeat(b"")), strict=False)
    ]
    heads = [manage.heads_step(part, failures.MOST // share, share=share) for part in parts if state == "dead"]
    flows: list[Flow[Any]] = [
        _all([manage.count_step(part.key("")) for part in parts]),
        _all([Call("XLEN", part.key("done")) for part in parts]),
        _all(heads),
        *reading,
    ]
    counted, lengths, dead, *by_part = yield from gather(flows)
    counts, done = job.summed([QueueCounts(*reply) for reply in counted]), sum(lengths)
    groups = failures.groups(manage.merged("dead", [manage.page("dead", reply) for reply in dead], failures.MOST))
    jobs: list[JobInfo | DoneJob] = []
    looked_at = 0
    for number, (entries, rest) in enumerate(by_part, start=first):
        for place, info in entries:
            looked_at += 1
            if wanted.matches(info):
                jobs.append(info)
            if len(jobs) == limit:
                return JobPage(counts, done, jobs, looked_at, _cursor(number, place), groups)
        if rest:
            return JobPage(counts, done, jobs, looked_at, _cursor(number, rest), groups)
    return JobPage(counts, done, jobs, looked_at, "", groups)


def _all(steps: Sequence[Any]) -> Flow[list[Any]]:
    return (yield Batch(steps)) if steps else []


def _read(queue: Primitive, state: State, after: bytes, limit: int, share: int) -> Flow[tuple[list[Any], bytes]]:
    """Return jobs of a part with their places, and the place after which there may be more, b"" at the end."""
    reply = yield manage.LIST_JOBS(queue.key(""), state, 0, after, limit, manage.HEAD, MOST_BYTES // share)
    places, jobs = reply[4], manage.page(state, reply)
    has_more = jobs and (len(places) == limit or len(jobs) < len(places))
    return list(zip(places, jobs, strict=False)), places[len(jobs) - 1] if has_more else b""


def _read_done(queue: Primitive, after: bytes, limit: int) -> Flow[tuple[list[Any], bytes]]:
    """Return done jobs as _read() does, from the latest. The place of one is its id in the stream."""
    entries = yield Call("XREVRANGE", queue.key("done"), b"(" + after if after else b"+", "-", "COUNT", limit)
    jobs = [(id, info) for id, fields in entries if (info := done_jobs.read(id, fields))]
    return jobs, entries[-1][0] if len(entries) == limit else b""


def all_matching(queue: Primitive, state: State, wanted: JobFilter, limit: int) -> Flow[list[JobInfo]]:
    """Return the first ``limit`` jobs that match, of 10,000 of each state. A round trip for each 1000."""
    jobs: list[JobInfo] = []  # none of them is done
    cursor = ""
    for _ in range(ROUNDS):
        page = yield from job_page(queue, state, cursor=cursor, wanted=wanted, limit=limit - len(jobs))
        jobs += [info for info in page.jobs if isinstance(info, JobInfo)]
        cursor = page.cursor
        if not cursor or len(jobs) == limit:
            break
    return jobs


def _cursor(shard: int, place: bytes) -> str:
    return (b"%d %b" % (shard, place)).hex()


def _position(cursor: str, state: State) -> tuple[int, bytes]:
    pattern = _POSITION_OF_DONE if state == DONE else _POSITION
    try:
        match = pattern.fullmatch(bytes.fromhex(cursor)) if cursor else None
    except ValueError:
        match = None
    if cursor and not match:
        raise InvalidValue("The cursor of a page is that of the page before it, unchanged.")
    return (int(match[1]), match[2]) if match else (0, b"")


def first_jobs(queue: Primitive, state: State, limit: int, wanted: Wanted = ANY) -> Flow[list[JobInfo]]:
    """Return the first ``limit`` jobs of a state in the order of peek(), or those among them that match.

    Their bodies are cut to what task_of() and tags_of() need. One round trip; with a task or a tag one for each 1000
    jobs of the state, at most 10.
    """
    by_shard = yield from spread().each(
        queue, partial(manage.find, state=state, wanted=wanted, limit=limit, most=LISTED_THROUGH)
    )
    return manage.merged(state, by_shard, limit)


def latest_done(queue: Primitive, limit: int, wanted: Wanted = ANY) -> Flow[list[DoneJob]]:
    """Return the latest ``limit`` done jobs that the queue keeps, or those among them that match.

    One round trip, two if the settings name SHARDS. With a task or a tag 10,000 are looked at.
    """
    by_shard = yield from spread().each(queue, partial(_latest_done, limit=limit, wanted=wanted))
    return sorted((info for some in by_shard for info in some), key=lambda info: -info.ended)[:limit]


def _latest_done(queue: Primitive, *, limit: int, wanted: Wanted) -> Flow[list[DoneJob]]:
    count = limit if wanted == ANY else LISTED_THROUGH
    entries, _ = yield from _read_done(queue, b"", count)
    return [
        info
        for _, info in entries
        if wanted.task in (None, info.task) and (wanted.tag is None or wanted.tag in info.tags)
    ][:limit]
