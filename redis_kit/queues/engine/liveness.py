"""Signs of life of workers, as flows, and the jobs of workers that died."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.queues import validation
from redis_kit.queues.engine import calls, ids, message
from redis_kit.queues.engine.feature import results

RETURNED = 100  # jobs in one call
LONGEST = 86_400_000  # ms: threads can't wait for ever, and something else may have written a time far ahead


class Poison(NamedTuple):
    """A job that is dead since too many workers died with it, the reason, and the beginning of its body.

    ``task`` is "" if it names none.
    """

    id: str
    reason: str
    task: str
    head: bytes = b""


class HeartbeatReply(NamedTuple):
    """The reply to a heartbeat: seconds to the next job and to the end of another worker's lease; jobs returned.

    ``command`` is what the worker is to do, "" for nothing; ``cancelled`` are those of its jobs to stop, ``held`` is a
    page of its claims that the server holds as running, ``unknown`` are the shapes of calls that workers returned;
    ``now`` is the server's time in seconds. ``since`` is since when it knows the worker, in ms: later than before if it
    lost its data, or if the worker was silent for half a lease. ``endings`` is how many results are to be stored of
    jobs that ended without their worker.
    """

    next_job: float | None
    next_lease: float | None
    returned: int
    dead: list[Poison]
    command: str
    cancelled: list[str]
    held: list[bytes]
    unknown: list[str]
    now: float
    since: int
    endings: int = 0


def heartbeat(queue: Primitive, worker: str | None, about: str = "") -> Flow[HeartbeatReply]:
    """Keep a worker alive, and return the jobs of dead workers to the queue."""
    reply = heartbeat_reply((yield calls.heartbeat(queue.key(""), worker_id(worker), about)))
    yield from after_endings(queue, reply.endings)
    return reply


def sign_off(queue: Primitive, worker: str | None) -> Flow[int]:
    """Return all jobs of a worker to the queue, and remove it."""
    total = 0
    while True:
        count: int
        count, endings = yield calls.sign_off(queue.key(""), worker_id(worker), RETURNED)
        total += count
        yield from after_endings(queue, endings)
        if count < RETURNED:
            return total


def after_endings(queue: Primitive, count: int) -> Flow[None]:
    """Store the results of jobs that ended without their worker, if there are any."""
    if count and (stored := results()):
        yield from stored.store_endings(queue)


def heartbeat_reply(reply: list[Any]) -> HeartbeatReply:
    """Return the script's reply by names."""
    next_job, next_lease, returned, command, cancelled, held, unknown, now, since, endings = reply[:10]
    return HeartbeatReply(
        seconds(next_job),
        seconds(next_lease),
        returned,
        poison(reply[10:]),
        command.decode("utf-8", "replace"),
        [id.decode("utf-8", "surrogateescape") for id in cancelled],
        held,
        [row.split(b" ", 3)[-1].decode("utf-8", "replace") for row in unknown[1::2]],
        now / 1000,
        since,
        endings,
    )


def poison(reply: Sequence[bytes]) -> list[Poison]:
    """Return the jobs that a script buried: id, reason and the beginning of the body of each."""
    parts = zip(reply[::3], reply[1::3], reply[2::3], strict=True)
    return [
        Poison(id.decode("utf-8", "surrogateescape"), reason.decode(), message.task_of(body), body)
        for id, reason, body in parts
    ]


def seconds(milliseconds: float) -> float | None:
    """Return milliseconds, which may be infinite, as seconds, a day at most; None for -1."""
    return None if milliseconds < 0 else min(milliseconds, LONGEST) / 1000


def worker_id(worker: str | None) -> str:
    """Return the id of a worker; by default that of this process. Raises InvalidValue."""
    return ids.this_process() if worker is None else validation.identifier("worker", worker)
