"""The limits of a queue, as flows."""

from typing import NamedTuple

from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.queues.jobs import lane
from redis_kit.queues.store import calls


class LimitInfo(NamedTuple):
    """A limit of a queue.

    - ``concurrency`` and ``rate``: what it allows, None for any number. With ``changed`` that was set at run time, in
      place of what the code says.
    - ``running``: its running jobs. ``waiting``: groups, or sets of jobs with the same limits, that wait for it. A
      limit with a ``*`` in its name counts those of all values.
    - ``next_start``: seconds until it allows the next start, 0 if it does so now.
    """

    name: str
    concurrency: int | None
    rate: str | None
    changed: bool
    running: int
    waiting: int
    next_start: float


def listed(queue: Primitive) -> Flow[list[LimitInfo]]:
    """Return the limits of a queue, at most 100."""
    now, *reply = yield calls.LIST_LIMITS(queue.key(""), "")
    return [_info(now, *reply[at : at + 6]) for at in range(0, len(reply), 6)]


def change(queue: Primitive, name: str, concurrency: int | None, rate: str | None) -> Flow[bool]:
    """Set what a limit allows, in place of what the code says; without any, everything."""
    allowed = lane.allowed(concurrency, rate)
    text = lane.EVERYTHING if allowed == lane.NOTHING else allowed
    return bool((yield calls.SET_LIMIT(queue.key(""), lane.limit_name(name), text)))


def reset(queue: Primitive, name: str) -> Flow[bool]:
    """Go back to what the code says."""
    return bool((yield calls.SET_LIMIT(queue.key(""), lane.limit_name(name), lane.NOTHING)))


def _info(now: int, name: bytes, set: bytes, code: bytes, running: int, waiting: int, start: int) -> LimitInfo:
    concurrency, _, rest = (set or code).decode("utf-8", "replace").partition(" ")
    rate = rest.partition(" ")[2]
    most = int(concurrency) if concurrency.isdigit() else None
    seconds = max(0, start - now) / 1000 if start else 0.0
    return LimitInfo(name.decode("utf-8", "replace"), most, rate or None, bool(set), running, waiting, seconds)
