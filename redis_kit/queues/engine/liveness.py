"""Signs of life of workers, as flows, and the jobs of workers that died."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues import validation
from redis_kit.queues.engine import calls, ids, message
from redis_kit.queues.engine.feature import has, provided
from redis_kit.queues.engine.job import seconds

RETURNED = 100  # jobs in one call


class Poison(NamedTuple):
    """A job that is dead since too many workers died with it, the reason, and the beginning of its body.

    ``task`` is "" if it names none.
    """

    id: str
    reason: str
    task: str
    head: bytes = b""


class HeartbeatReply(NamedTuple):
    """The reply to a heartbeat: seconds to the next job and to the end of another worker's lease.

    ``command`` is what the worker is to do, "" for nothing; ``cancelled`` are those of its jobs to stop, ``held`` is a
    page of its claims that the server holds as running, ``unknown`` are the shapes of calls that workers returned;
    ``now`` is the server's time in seconds. ``since`` is since when it knows the worker, in ms: later than before if it
    lost its data, or if the worker was silent for half a lease. ``endings`` is how many results are to be stored of
    jobs that ended without their worker. ``silent`` are workers whose leases are over: take_over() returns their jobs,
    ``returned`` how many, and ``dead`` those that died with them too often; ``error`` is why it can't.
    """

    next_job: float | None
    next_lease: float | None
    command: str
    cancelled: list[str]
    held: list[bytes]
    unknown: list[str]
    now: float
    since: int
    endings: int
    silent: Sequence[bytes]
    returned: int = 0
    dead: Sequence[Poison] = ()
    error: RedisFailure | None = None


def heartbeat(queue: Primitive, worker: str | None, about: str = "") -> Flow[HeartbeatReply]:
    """Keep a worker alive, and return the jobs of dead workers to the queue. A round trip more for each of these."""
    reply = heartbeat_reply((yield calls.heartbeat(queue.key(""), worker_id(worker), about)))
    return (yield from take_over(queue, reply))


def take_over(queue: Primitive, reply: HeartbeatReply) -> Flow[HeartbeatReply]:
    """Return the jobs of the dead workers that a heartbeat found, 100 at most, and store results of jobs that ended."""
    dead: list[Poison] = []
    endings, returned, room, next_lease = reply.endings, 0, RETURNED, reply.next_lease
    for worker in reply.silent:
        taken, endings, count, *buried = yield calls.reap_silent(queue.key(""), worker, room)
        returned += count
        dead += poison(buried)
        room -= taken
        if not room:
            next_lease = 0.0  # there may be more
            break
    yield from after_endings(queue, endings)
    return reply._replace(returned=returned, dead=dead, next_lease=next_lease)


def sign_off(queue: Primitive, worker: str | None) -> Flow[int]:
    """Return all jobs of a worker to the queue, and remove it."""
    return (yield from reap(queue, calls.sign_off(queue.key(""), worker_id(worker), RETURNED), RETURNED))[0]


def reap(queue: Primitive, step: ScriptCall, most: int) -> Flow[tuple[int, list[Poison]]]:
    """Repeat a step that takes ``most`` jobs of a worker until none is left; return how many, and which are dead."""
    total, dead = 0, []
    while True:
        taken, endings, _, *buried = yield step
        yield from after_endings(queue, endings)
        total += taken
        dead += poison(buried)
        if taken < most:
            return total, dead


def after_endings(queue: Primitive, count: int) -> Flow[None]:
    """Store the results of jobs that ended without their worker, if there are any."""
    if count and has("store_endings"):
        yield from provided("store_endings")(queue)


def heartbeat_reply(reply: list[Any]) -> HeartbeatReply:
    """Return the script's reply by names."""
    next_job, next_lease, command, cancelled, held, unknown, now, since, endings, silent = reply
    return HeartbeatReply(
        seconds(next_job),
        seconds(next_lease),
        command.decode("utf-8", "replace"),
        [id.decode("utf-8", "surrogateescape") for id in cancelled],
        held,
        [row.split(b" ", 3)[-1].decode("utf-8", "replace") for row in unknown[1::2]],
        now / 1000,
        since,
        endings,
        silent,
    )


def poison(reply: Sequence[bytes]) -> list[Poison]:
    """Return the jobs that a script buried: id, reason and the beginning of the body of each."""
    parts = zip(reply[::3], reply[1::3], reply[2::3], strict=True)
    return [
        Poison(id.decode("utf-8", "surrogateescape"), reason.decode(), message.task_of(body), body)
        for id, reason, body in parts
    ]


def worker_id(worker: str | None) -> str:
    """Return the id of a worker; by default that of this process. Raises InvalidValue."""
    return ids.this_process() if worker is None else validation.identifier("worker", worker)
