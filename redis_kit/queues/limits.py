"""The limits of a queue at run time: list, change, reset."""

from redis_kit.queues.engine import lane_limits
from redis_kit.queues.engine.lane_limits import LimitInfo
from redis_kit.queues.engine.queue import Queue

__all__ = ["LimitInfo", "alist_limits", "areset_limit", "aset_limit", "list_limits", "reset_limit", "set_limit"]


def list_limits(queue: str, *, using: str = "default") -> list[LimitInfo]:
    """Return the limits of a queue that the code or somebody set, at most 100, with their use. One round trip."""
    chosen = Queue(queue, using=using)
    return chosen.run_flow(lane_limits.listed(chosen))


async def alist_limits(queue: str, *, using: str = "default") -> list[LimitInfo]:
    """See list_limits()."""
    chosen = Queue(queue, using=using)
    return await chosen.arun_flow(lane_limits.listed(chosen))


def set_limit(
    queue: str, name: str, *, concurrency: int | None = None, rate: str | None = None, using: str = "default"
) -> bool:
    """Set what a limit allows, in place of what the code says, until reset_limit(). False if it is so already.

    The name is "group=tenant:7", "group=*" for each group, or that of a limit that the code declares. Without
    ``concurrency`` and ``rate`` it allows everything; ``concurrency=0`` lets no job start. Jobs that wait may start at
    once. Raises InvalidValue, InvalidRate. One round trip.
    """
    chosen = Queue(queue, using=using)
    return chosen.run_flow(lane_limits.change(chosen, name, concurrency, rate))


async def aset_limit(
    queue: str, name: str, *, concurrency: int | None = None, rate: str | None = None, using: str = "default"
) -> bool:
    """See set_limit()."""
    chosen = Queue(queue, using=using)
    return await chosen.arun_flow(lane_limits.change(chosen, name, concurrency, rate))


def reset_limit(queue: str, name: str, *, using: str = "default") -> bool:
    """Let a limit allow again what the code says. False if it did so. One round trip."""
    chosen = Queue(queue, using=using)
    return chosen.run_flow(lane_limits.reset(chosen, name))


async def areset_limit(queue: str, name: str, *, using: str = "default") -> bool:
    """See reset_limit()."""
    chosen = Queue(queue, using=using)
    return await chosen.arun_flow(lane_limits.reset(chosen, name))
