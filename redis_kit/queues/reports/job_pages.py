"""The jobs of a queue in one state, page by page, and those among them of a task or an error."""

import re
from collections.abc import Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any, NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, single
from redis_kit.core.gather import gather
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Call
from redis_kit.queues import validation
from redis_kit.queues.engine import job
from redis_kit.queues.engine.done import DoneJob
from redis_kit.queues.engine.job import JobInfo, QueueCounts, State
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.management import manage
from redis_kit.queues.management.manage import ANY, JobFilter
from redis_kit.queues.queue import Queue
from redis_kit.queues.reports import failures
from redis_kit.queues.reports.failures import Group

LOOKED_THROUGH = 1000  # jobs in one call, for those that match
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
    flows: list[Flow[Any]] = [
        gather([manage.counts(part) for part in parts]),
        gather([single(Call("XLEN", part.key("done"))) for part in parts]),
        gather([failures.heads(part, share) for part in parts if state == "dead"]),
        *(
            manage.read(part, state, size, after=place, share=share)
            for part, place in zip(parts[first:], chain([after], repeat(b"")), strict=False)
        ),
    ]
    counted, lengths, dead, *pages = yield from gather(flows)
    counts, done = job.summed(counted), sum(lengths)
    groups = failures.groups(manage.merged("dead", [page.jobs for page in dead], failures.MOST))
    jobs: list[JobInfo | DoneJob] = []
    looked_at = 0
    for number, page in enumerate(pages, start=first):
        for place, info in zip(page.places, page.jobs, strict=True):
            looked_at += 1
            if wanted.matches(info):
                jobs.append(info)
            if len(jobs) == limit:
                return JobPage(counts, done, jobs, looked_at, _cursor(number, place), groups)
        if page.rest:
            return JobPage(counts, done, jobs, looked_at, _cursor(number, page.rest), groups)
    return JobPage(counts, done, jobs, looked_at, "", groups)


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
    one for each 1000 jobs of the state, at most 10.
    """
    by_part = yield from spread().each(
        queue, partial(manage.find, state=state, wanted=wanted, limit=limit, most=LISTED_THROUGH)
    )
    return manage.merged(state, by_part, limit)
