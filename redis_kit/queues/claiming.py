"""Claims as a flow. One whose answer got lost is repeated by the worker's next claim, so no job is stranded."""

import os
from collections import defaultdict
from secrets import token_urlsafe
from typing import Any, NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.queues import moves
from redis_kit.queues.job import Job, claimed

FAR = 86_400_000  # ms: threads can't wait for ever, as a time that somebody else wrote may have it
_unanswered: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
os.register_at_fork(after_in_child=_unanswered.clear)


class Claimed(NamedTuple):
    """The jobs of a claim, and the seconds until there may be another; None when none is known of."""

    jobs: list[Job]
    next: float | None


class Beaten(NamedTuple):
    """What a beat tells: seconds to the next job, and to the end of another worker's lease; what was given back."""

    next_job: float | None
    next_lease: float | None
    given_back: int
    dead: list[str]


def claim(base: str, worker: str, limit: int, about: str = "") -> Flow[Claimed]:
    """Take jobs; where another worker's lease turned out to be over, give back its jobs first."""
    reply = yield from _claim(base, worker, limit, about)
    if reply[1] == 0:
        found = beaten((yield moves.beat(base, worker, about)))
        if found.given_back and len(reply) == 2:
            reply = yield from _claim(base, worker, limit, about)
    return Claimed(claimed(reply[2:]), seconds(reply[0]))


def _claim(base: str, worker: str, limit: int, about: str) -> Flow[list[Any]]:
    try:
        token = _unanswered[base, worker].pop()
    except IndexError:
        token = token_urlsafe(6)
    try:
        reply: list[Any] = yield moves.claim(base, worker, token, limit, about)
    except BaseException as error:
        if not isinstance(error, RedisFailure) or getattr(error, "indeterminate", False):
            _unanswered[base, worker].append(token)
        raise
    return reply


def beaten(reply: list[Any]) -> Beaten:
    """Return the answer to a beat in words."""
    dead = [id.decode("utf-8", "surrogateescape") for id in reply[3:]]
    return Beaten(seconds(reply[0]), seconds(reply[1]), reply[2], dead)


def seconds(milliseconds: int) -> float | None:
    """Return milliseconds as seconds, a day at most; None for -1."""
    return None if milliseconds < 0 else min(milliseconds, FAR) / 1000
