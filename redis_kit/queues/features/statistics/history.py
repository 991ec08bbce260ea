"""The numbers of a queue by hour."""

from collections.abc import Callable, Sequence
from typing import Any

from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.core.values.numbers import whole_number
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.features.statistics import store
from redis_kit.queues.queue import Queue
from redis_kit.queues.reports.stats import QueueHistory


def queue_history(queue: str, *, hours: int = 168, using: str = "default") -> QueueHistory:
    """Return the numbers of a queue in the last hours, 1 to 2160, the present one among them.

    A supervisor of ``rk_worker`` adds up the minutes of past hours. Those of a queue without one end after 72 hours.
    One round trip, two if the settings name SHARDS. Raises InvalidValue.
    """
    history: QueueHistory = Queue(queue, using=using).run_flow(read_history(queue, hours, using))
    return history


async def aqueue_history(queue: str, *, hours: int = 168, using: str = "default") -> QueueHistory:
    """See queue_history()."""
    history: QueueHistory = await Queue(queue, using=using).arun_flow(read_history(queue, hours, using))
    return history


def read_history(queue: str, hours: int, using: str) -> Flow[QueueHistory]:
    """See queue_history()."""
    whole_number("hours", hours, (1, store.KEPT_HOURS))
    names = yield from spread().existing([queue])
    replies = yield Batch([store.GET_HOURS(Queue(name, using=using).key(""), hours) for name in names[queue]])
    done, failed, begun, late = (_by_hour(replies, at, sum) for at in range(1, 5))
    lateness = [total / 1000 / max(1, count) for total, count in zip(late, begun, strict=True)]
    latest = [most / 1000 for most in _by_hour(replies, 5, max)]
    return QueueHistory(replies[0][0], done, failed, begun, lateness, latest)


def _by_hour(replies: Sequence[list[Any]], at: int, joined: Callable[[tuple[int, ...]], int]) -> list[int]:
    """Return one number of each hour, joined from those of all shards."""
    return [joined(same) for same in zip(*(reply[at::5] for reply in replies), strict=True)]
