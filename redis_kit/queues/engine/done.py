"""The latest done jobs of a queue, with what is noted about each when it is acknowledged."""

import json
from typing import Any, NamedTuple

from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.message import tags_of, task_of


class DoneJob(NamedTuple):
    """A job that was acknowledged. ``task`` is "" if it named none.

    ``ended`` is when, in seconds since 1970 on the server's clock; ``attempts`` how many began. ``wait`` is for how
    many seconds the last attempt was due until its claim, ``run_time`` how many it took: None if no task ran.
    """

    id: str
    task: str
    ended: float
    attempts: int
    wait: float
    run_time: float | None
    worker: str
    tags: tuple[str, ...] = ()


def line(job: Job, run_time: float | None = None) -> bytes:
    """Return what is noted about a job."""
    wait, took = wait_of(job), None if run_time is None else round(run_time, 6)
    about = [job.id, task_of(job.body), job.attempt, round(wait, 3), took, *tags_of(job.body)]
    return json.dumps(about, separators=(",", ":")).encode()


def wait_of(job: Job) -> float:
    """Return for how many seconds a claimed job was due."""
    return max(0.0, job.claimed - job.due) if job.due else 0.0


def read(place: bytes, fields: list[bytes]) -> DoneJob | None:
    """Return a job by its place in the stream and the fields there; None for a damaged entry."""
    noted = dict(zip(fields[::2], fields[1::2], strict=False))
    try:
        id, task, attempts, wait, took, *tags = json.loads(noted[b"job"])
        worker = noted.get(b"worker", b"").decode("utf-8", "replace")
        ended = int(place.partition(b"-")[0]) / 1000
        run_time = None if took is None else float(took)
        texts = tuple(map(_text, tags))
        return DoneJob(_text(id), _text(task), ended, int(attempts), float(wait), run_time, worker, texts)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value
