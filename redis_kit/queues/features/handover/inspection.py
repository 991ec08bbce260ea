"""How many jobs of queues other systems took."""

from collections.abc import Iterable
from typing import NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.steps import Call
from redis_kit.queues import framework
from redis_kit.queues.queue import over
from redis_kit.queues.reports.stats import of_all, read_names


class HandOvers(NamedTuple):
    """How many jobs of a queue another system took, how often it did not take one, and the last error.

    ``sent_at`` and ``failed_at`` are the times of the last ones, in seconds since 1970; None if there was none.
    ``to`` is the sink of the last one: "celery", or a dotted path.
    """

    sent: int
    failed: int
    sent_at: float | None
    failed_at: float | None
    error: str
    to: str


@operation(over=over)
def hand_overs(queues: Iterable[str], *, using: str = "default") -> Flow[dict[str, HandOvers]]:
    """Return how many jobs of queues other systems took, and the last error. One round trip.

    Queues without any are left out, and those whose key is damaged.
    """
    return _read(queues, using)


def read_hand_overs(using: str) -> Flow[dict[str, HandOvers]]:
    """Read the hand-overs of all queues. Two round trips, and one more if the settings name SHARDS of a queue."""
    return (yield from _read((yield from read_names()), using))


def sinks_of_backends() -> dict[str, str]:
    """Return the sinks of the task backends that have one, by alias."""
    if not framework.FOUND:
        return {}
    from redis_kit.queues import backend

    return backend.sinks()


def _read(names: Iterable[str], using: str) -> Flow[dict[str, HandOvers]]:
    counts: dict[str, HandOvers] = {}
    for name, reply in (yield from of_all(names, using, lambda base: Call("HGETALL", f"{base}handovers"))):
        if reply and not isinstance(reply, RedisFailure):
            count = _counted(reply)
            counts[name] = _merged(counts[name], count) if name in counts else count
    return counts


def _counted(reply: list[bytes]) -> HandOvers:
    fields = dict(zip(reply[::2], reply[1::2], strict=True))
    sent, failed, sent_at, failed_at = (
        int(text) if (text := fields.get(name, b"0")).isdigit() else 0
        for name in (b"sent", b"failed", b"sent_at", b"failed_at")
    )
    error, to = (fields.get(name, b"").decode("utf-8", "backslashreplace") for name in (b"error", b"to"))
    return HandOvers(sent, failed, sent_at / 1000 or None, failed_at / 1000 or None, error, to)


def _merged(counts: HandOvers, other: HandOvers) -> HandOvers:
    """Return the counts of two shards as one, with the later error."""
    latest = max(counts, other, key=lambda each: each.failed_at or 0)
    sent_at = max(filter(None, (counts.sent_at, other.sent_at)), default=None)
    return latest._replace(sent=counts.sent + other.sent, failed=counts.failed + other.failed, sent_at=sent_at)


ahand_overs = twin(hand_overs)
