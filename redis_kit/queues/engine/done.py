"""Jobs that are done: their acknowledgements, and the lines of a stream with the latest of them."""

import json
import struct
from itertools import accumulate, pairwise
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


_ACK = struct.Struct("<HIIIIQ")


class Ack(NamedTuple):
    """A job that is done, with the number of its worker queue, its claim, and its result to store; b"" without one.

    ``about`` is what the stream of done jobs holds of it, b"" if its queue has none.
    """

    source: int
    token: bytes
    id: bytes
    value: bytes = b""
    ttl_ms: int = 0
    about: bytes = b""

    def pack(self) -> bytes:
        """Return it as bytes."""
        texts = self.token, self.id, self.value, self.about
        return b"".join((_ACK.pack(self.source, *map(len, texts), self.ttl_ms), *texts))

    @classmethod
    def unpack(cls, entry: bytes) -> "Ack":
        """Return what pack() was called on. Raises ValueError for other bytes."""
        try:
            source, *lengths, ttl_ms = _ACK.unpack_from(entry)
        except struct.error as error:
            raise ValueError("too short for an entry") from error
        if len(entry) != _ACK.size + sum(lengths):
            raise ValueError("the lengths in an entry don't fit it")
        ends = list(accumulate(lengths, initial=_ACK.size))
        token, id, value, about = [entry[begin:end] for begin, end in pairwise(ends)]
        return cls(source, token, id, value, ttl_ms, about)


def ack_of(job: Job, value: bytes = b"", ttl_ms: int = 0, *, source: int = 0, about: bytes = b"") -> Ack:
    """Return the acknowledgement of a job that is done."""
    token = job.token.encode("utf-8", "surrogateescape")
    return Ack(source, token, job.id.encode("utf-8", "surrogateescape"), value, ttl_ms, about)


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
