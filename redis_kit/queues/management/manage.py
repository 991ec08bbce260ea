"""Reading and changing the jobs of a queue, as flows."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from sys import maxsize
from typing import Any, NamedTuple

from redis_kit.core.flow import Flow, single
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Call
from redis_kit.core.values.sequences import batched
from redis_kit.queues import validation
from redis_kit.queues.engine import done, job, message
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.engine.done import DoneJob
from redis_kit.queues.engine.feature import provided
from redis_kit.queues.engine.job import JobInfo, State
from redis_kit.queues.engine.spread import spread

LIST_JOBS, GET_JOB, DELETE, REQUEUE = (
    QueueScript(name, __package__) for name in ("list_jobs", "get_job", "delete", "requeue")
)
CHUNK = 500  # jobs in one call
HEAD = 512  # bytes of a record, which hold its numbers and the name of its task
PAGE = 1000  # jobs in one call of a search
LOOKED_THROUGH = 10_000  # running jobs in a search for the worker of one
MOST_BYTES = 16 * 1024 * 1024  # read by one call
UNCUT = 2**31
STOPPING = 2  # the reply for a running job
STATES = ("ready", "scheduled", "running", "dead")
PURGED = ("ready", "scheduled", "dead")
_ORDERS: Mapping[str, Callable[[Any], Any]] = {  # of the jobs of several parts
    "ready": lambda info: (-info.priority, info.due),
    "scheduled": lambda info: info.due,
    "running": lambda info: info.worker or "",
    "dead": lambda info: -(info.died or 0),
    "done": lambda info: -info.ended,
}


class JobFilter(NamedTuple):
    """Which jobs are meant: those of a task, those that died of an error, and those with a tag; None for any."""

    task: str | None = None
    error: str | None = None
    tag: str | None = None

    def matches(self, info: JobInfo | DoneJob) -> bool:
        """Return whether a job is one of them. The first bytes of its body are enough."""
        if isinstance(info, DoneJob):
            return self.fits(info.task, "", info.tags)
        return self.fits(message.task_of(info.body), info.reason, message.tags_of(info.body))

    def fits(self, task: str, reason: str, tags: Sequence[str]) -> bool:
        """Return whether a job with this task, reason of its death and tags is one of them."""
        has_error = self.error in (None, job.error_of(reason))
        return self.task in (None, task) and has_error and (self.tag is None or self.tag in tags)


ANY = JobFilter()


class Page(NamedTuple):
    """Jobs of one part of a queue and their places: fewer than the limit if they are large.

    ``rest`` is the place after which there may be more, b"" at the end.
    """

    jobs: list[Any]
    places: list[bytes]
    rest: bytes


def merged(state: State, jobs: Sequence[list[Any]], limit: int) -> list[Any]:
    """Return the first jobs of several parts of a queue, each given in the order of peek()."""
    if len(jobs) == 1:
        return jobs[0]
    return sorted(chain.from_iterable(jobs), key=_ORDERS[state])[:limit]


def read(
    queue: Primitive, state: State, limit: int, *, after: bytes = b"", cut: int = HEAD, most_bytes: int = 0
) -> Flow[Page]:
    """Read jobs of one part of a queue, done ones from the latest; of a body what cause() and tags_of() need."""
    if state == "done":
        entries = yield Call("XREVRANGE", queue.key("done"), b"(" + after if after else b"+", "-", "COUNT", limit)
        jobs = {id: info for id, fields in entries if (info := done.read(id, fields))}
        return Page(list(jobs.values()), list(jobs), entries[-1][0] if len(entries) == limit else b"")
    reply = yield LIST_JOBS(queue.key(""), state, after, limit, cut, most_bytes or MOST_BYTES)
    return Page(job.stored(state, reply[5]), reply[4], reply[6])


def find(
    queue: Primitive, state: State, wanted: JobFilter, *, limit: int = maxsize, most: int = maxsize
) -> Flow[list[Any]]:
    """Read the first ``limit`` jobs that match among the first ``most`` of a part of a queue. See read()."""
    # A job that changes its state meanwhile may be on two pages. Several done jobs may have the same id.
    matching: dict[str | bytes, Any] = {}
    after, looked_at = b"", 0
    size = limit if wanted == ANY else most if state == "done" else PAGE
    while True:
        page = yield from read(queue, state, size, after=after)
        names = page.places if state == "done" else [info.id for info in page.jobs]
        matching |= {name: info for name, info in zip(names, page.jobs, strict=False) if wanted.matches(info)}
        after, looked_at = page.rest, looked_at + (size if state == "done" else len(page.jobs))
        if not after or looked_at >= most or len(matching) >= limit:
            return list(matching.values())[:limit]


def get(queue: Primitive, id: str) -> Flow[JobInfo | None]:
    """Read one job of a part of a queue."""
    (reply,) = yield GET_JOB(queue.key(""), validation.identifier("id", id), LOOKED_THROUGH)
    return job_info(reply)


def job_info(reply: list[bytes]) -> JobInfo | None:
    """Return the job in the first part of a reply of GET_JOB, if there is one."""
    if not reply:
        return None
    state: State = reply[0].decode()  # type: ignore[assignment]
    return job.stored(state, reply[1:])[0]


def change(queue: Primitive, id: str, step: Callable[[str, str], ScriptCall]) -> Flow[int]:
    """Carry out a step in the part of a queue that has a job, and return the answer. Raises InvalidValue."""
    validation.identifier("id", id)
    answer: int = yield from spread().of_id(queue, id, lambda part: single(step(part.key(""), id)))
    return answer


def cancel(queue: Primitive, id: str, ttl_ms: int | None = None) -> Flow[int]:
    """Cancel a job, now or by its worker; the error of a waiting job is stored as its result for ``ttl_ms``.

    Return 0 if it neither waited nor ran, and STOPPING if its worker has yet to stop it.
    """
    return change(queue, id, partial(provided("canceller"), ttl_ms=ttl_ms))


def delete_step(base: str, id: str, *, state: str = "") -> ScriptCall:
    """Return the step that deletes a job that no worker has, or that is in a state."""
    return DELETE(base, state, 0, id)


def requeue_step(base: str, id: str, *, state: State) -> ScriptCall:
    """Return the step that makes a scheduled or a dead job ready."""
    return REQUEUE(base, state, 0, id)


def requeue(queue: Primitive, *, ids: Sequence[str]) -> Flow[int]:
    """Make dead jobs of a part of a queue ready."""
    moved = 0
    for some in batched(ids, CHUNK):
        moved += yield REQUEUE(queue.key(""), "dead", 0, *some)
    return moved


def requeue_oldest(queue: Primitive, limit: int | None, *, wanted: JobFilter) -> Flow[int]:
    """Make the oldest dead jobs of a part of a queue ready, or the oldest of those that match."""
    if wanted == ANY:
        count: int = yield REQUEUE(queue.key(""), "dead", limit)
        return count
    latest_first = yield from find(queue, "dead", wanted)
    return (yield from requeue(queue, ids=[dead.id for dead in reversed(latest_first)][:limit]))


def counts(queue: Primitive) -> Flow[job.QueueCounts]:
    """Count the jobs of a part of a queue by state."""
    return job.QueueCounts(*(yield count_step(queue.key(""))))


def count_step(base: str) -> ScriptCall:
    """Return the step that counts jobs by state."""
    return LIST_JOBS(base, "")


def purge(queue: Primitive, *, state: State) -> Flow[int]:
    """Delete as many jobs of a part of a queue as are in a state at the start, so that it comes to an end."""
    stored = yield from counts(queue)
    most: int = getattr(stored, state)
    deleted = 0
    while deleted < most:
        count: int = yield DELETE(queue.key(""), state, min(CHUNK, most - deleted))
        deleted += count
        if not count:
            break
    return deleted
