"""The numbers of a queue by hour, for 90 days."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.core.values.numbers import whole_number
from redis_kit.queues.queue import Queue
from redis_kit.queues.store import hourly, shards


class QueueHistory(NamedTuple):
    """The numbers of a queue in each hour up to ``hour``, the present one, counted since 1970.

    - ``done`` and ``failed``: jobs and attempts.
    - ``begun``: attempts that began; ``lateness`` and ``latest``: seconds from the time for which these were due to
      their claims, on average and at most.
    """

    hour: int
    done: list[int]
    failed: list[int]
    begun: list[int]
    lateness: list[float]
    latest: list[float]

    @property
    def minute(self) -> int:
        """Return the last minute of the present hour, counted since 1970."""
        return 60 * self.hour + 59


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
    whole_number("hours", hours, (1, hourly.KEPT_HOURS))
    names = yield from shards.existing([queue])
    replies = yield Batch([hourly.get_hours(Queue(name, using=using).key(""), hours) for name in names[queue]])
    done, failed, begun, late = (_each(replies, at, sum) for at in range(1, 5))
    lateness = [total / 1000 / max(1, count) for total, count in zip(late, begun, strict=True)]
    latest = [most / 1000 for most in _each(replies, 5, max)]
    return QueueHistory(replies[0][0], done, failed, begun, lateness, latest)


def _each(replies: Sequence[list[Any]], at: int, joined: Callable[[tuple[int, ...]], int]) -> list[int]:
    """Return one number of each hour, joined from those of all shards."""
    return [joined(same) for same in zip(*(reply[at::5] for reply in replies), strict=True)]
