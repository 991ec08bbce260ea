"""The limits of a queue at run time: list, change, reset."""

from itertools import chain, islice
from typing import NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, operation, single, twin
from redis_kit.core.primitive import Primitive
from redis_kit.core.values.sequences import batched
from redis_kit.queues.engine.feature import has, provided
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.queue import Queue, over

__all__ = ["LimitInfo", "alist_limits", "areset_limit", "aset_limit", "list_limits", "reset_limit", "set_limit"]
MOST = 100  # limits


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
    infos: dict[str, LimitInfo] = {}
    if not has("lanes"):
        return []
    for info in chain.from_iterable((yield from spread().each(queue, _listed))):
        infos[info.name] = _merged(infos[info.name], info) if info.name in infos else info
    return list(islice(infos.values(), MOST))


def _listed(queue: Primitive) -> Flow[list[LimitInfo]]:
    now, *reply = yield provided("lanes").LIST_LIMITS(queue.key(""), "")
    return [_info(now, *parts) for parts in batched(reply, 6)]


def _merged(info: LimitInfo, other: LimitInfo) -> LimitInfo:
    """Return a limit of the jobs of two shards as one."""
    start = min(info.next_start, other.next_start)
    return info._replace(running=info.running + other.running, waiting=info.waiting + other.waiting, next_start=start)


def _info(now: int, name: bytes, set: bytes, code: bytes, running: int, waiting: int, start: int) -> LimitInfo:
    concurrency, _, rest = (set or code).decode("utf-8", "replace").partition(" ")
    rate = rest.partition(" ")[2]
    most = int(concurrency) if concurrency.isdigit() else None
    seconds = max(0, start - now) / 1000 if start else 0.0
    shown = provided("lanes").shown_name(name.decode("utf-8", "replace"))
    return LimitInfo(shown, most, rate or None, bool(set), running, waiting, seconds)


@operation(over=over)
def list_limits(queue: str, *, using: str = "default") -> Flow[list[LimitInfo]]:
    """Return the limits of a queue that the code or somebody set, at most 100, with their use. One round trip."""
    return listed(Queue(queue, using=using))


@operation(over=over)
def set_limit(
    queue: str, name: str, *, concurrency: int | None = None, rate: str | None = None, using: str = "default"
) -> Flow[bool]:
    """Set what a limit allows, in place of what the code says, until reset_limit(). False if it is so already.

    The name is "group=tenant:7", "group=*" for each group, or that of a limit that the code declares. Without
    ``concurrency`` and ``rate`` it allows everything; ``concurrency=0`` lets no job start. Jobs that wait may start at
    once. Raises InvalidValue, InvalidRate. One round trip.
    """
    lanes = provided("lanes")
    allowed = lanes.allowed(concurrency, rate)
    if name == "queue" and len(spread().names(queue)) > 1:
        raise InvalidValue(f"The queue {queue!r} has SHARDS, so only its groups and tasks can have limits.")
    return _set(Queue(queue, using=using), name, lanes.EVERYTHING if allowed == lanes.NOTHING else allowed)


@operation(over=over)
def reset_limit(queue: str, name: str, *, using: str = "default") -> Flow[bool]:
    """Let a limit allow again what the code says. False if it did so. One round trip."""
    return _set(Queue(queue, using=using), name, provided("lanes").NOTHING)


def _set(queue: Primitive, name: str, text: str) -> Flow[bool]:
    lanes = provided("lanes")
    args = lanes.limit_name(name), text
    return any((yield from spread().each(queue, lambda part: single(lanes.SET_LIMIT(part.key(""), *args)))))


alist_limits = twin(list_limits)
aset_limit = twin(set_limit)
areset_limit = twin(reset_limit)
