"""Claims as a flow. One whose answer got lost is repeated by the worker's next claim, so no job is stranded."""

import os
from collections import defaultdict
from collections.abc import Sequence
from secrets import token_urlsafe
from typing import Any, NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.queues.jobs.ack import Ack
from redis_kit.queues.jobs.job import Job, claimed
from redis_kit.queues.jobs.message import task_of
from redis_kit.queues.store import calls

FAR = 86_400_000  # ms: threads can't wait for ever, as a time that somebody else wrote may have it
# By connection, keys of the queue, and worker: queues of one name on two servers are two queues.
_unanswered: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
os.register_at_fork(after_in_child=_unanswered.clear)


class Claimed(NamedTuple):
    """The jobs of a claim, and the seconds until there may be another; None when none is known of.

    ``lost`` numbers those of the ended jobs, from 0, whose claim had been lost.
    """

    jobs: list[Job]
    next: float | None
    lost: list[int]


class Poison(NamedTuple):
    """A job that is dead since too many workers died with it, and why; ``task`` is "" where it names none."""

    id: str
    reason: str
    task: str


class HeartbeatReply(NamedTuple):
    """What a beat tells: seconds to the next job, and to the end of another worker's lease; what was given back.

    ``order`` is what the worker is to do, "" for nothing; ``cancelled`` are those of its jobs that are to be cancelled,
    ``held`` a page of its claims that the server holds as running, ``unknown`` the shapes of calls that workers gave
    back; ``now`` is the server's time in seconds.
    """

    next_job: float | None
    next_lease: float | None
    given_back: int
    dead: list[Poison]
    order: str
    cancelled: list[str]
    held: list[bytes]
    unknown: list[str]
    now: float


def claim(queue: Primitive, worker: str, limit: int, about: str = "", ended: Sequence[Ack] = ()) -> Flow[Claimed]:
    """End jobs and take others; where another worker's lease turned out to be over, give back its jobs first."""
    found, next_lease = yield from ack_and_claim(queue, worker, limit, about, ended)
    if next_lease == 0:
        try:
            given_back = heartbeat_reply((yield calls.heartbeat(queue.key(""), worker, about))).given_back
        except BaseException as error:
            if isinstance(error, RedisFailure) and (found.jobs or found.lost):
                return found
            if found.jobs:  # a caller that was stopped gets them with its next claim
                claim = found.jobs[0].token.split("/")[1].rpartition(".")[0]
                _unanswered[queue.using, queue.key(""), worker].append(claim)
            raise
        if given_back and not found.jobs:
            again, _ = yield from ack_and_claim(queue, worker, limit, about)
            found = again._replace(lost=found.lost)
    return found


def ack_and_claim(
    queue: Primitive, worker: str, limit: int, about: str = "", ended: Sequence[Ack] = ()
) -> Flow[tuple[Claimed, float]]:
    """End jobs and take others; tell besides in how many ms another worker's lease ends."""
    base = queue.key("")
    unanswered = _unanswered[queue.using, base, worker]
    try:
        token, again = unanswered.pop(), True
    except IndexError:
        token, again = token_urlsafe(6), False
    try:
        reply: bytes = yield calls.ack_and_claim(base, worker, token, limit, about, again=again, ended=ended)
    except BaseException as error:
        if again or not isinstance(error, RedisFailure) or getattr(error, "indeterminate", False):
            unanswered.append(token)
        raise
    start = reply.index(b"\n")
    wait, next_lease, now, lost = reply[:start].split(b" ")
    jobs = claimed(reply, start + 1, f"{worker}/{token}", int(now) / 1000)
    numbers = [int(number) - 1 for number in lost.split(b",")] if lost else []
    return Claimed(jobs, seconds(float(wait)), numbers), float(next_lease)


def unanswered(queue: Primitive, worker: str) -> set[str]:
    """Return the claims of a worker whose answers got lost, and which its next call repeats."""
    return set(_unanswered.get((queue.using, queue.key(""), worker), ()))


def heartbeat_reply(reply: list[Any]) -> HeartbeatReply:
    """Return the answer to a beat in words."""
    cancelled = [id.decode("utf-8", "surrogateescape") for id in reply[4]]
    order = reply[3].decode("utf-8", "replace")
    *_, held, unknown, now = reply[:8]
    shapes = [row.split(b" ", 3)[-1].decode("utf-8", "replace") for row in unknown[1::2]]
    dead = poison(reply[8:])
    return HeartbeatReply(
        seconds(reply[0]), seconds(reply[1]), reply[2], dead, order, cancelled, held, shapes, now / 1000
    )


def poison(reply: Sequence[bytes]) -> list[Poison]:
    """Return the jobs that a script tells of as dead: id, reason and the beginning of the body of each."""
    found = [reply[at : at + 3] for at in range(0, len(reply), 3)]
    return [Poison(id.decode("utf-8", "surrogateescape"), why.decode(), task_of(body)) for id, why, body in found]


def seconds(milliseconds: float) -> float | None:
    """Return milliseconds, which may be without an end, as seconds, a day at most; None for -1."""
    return None if milliseconds < 0 else min(milliseconds, FAR) / 1000
