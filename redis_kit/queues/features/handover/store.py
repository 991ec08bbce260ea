"""Jobs that another system runs, as flows: those that it took, and those that it did not."""

from collections.abc import Mapping
from typing import NamedTuple

from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues.engine import calls
from redis_kit.queues.engine.calls import QueueScript

COUNT_HANDOVERS, GET_HANDOVERS = QueueScript("count_handovers", __package__), QueueScript("get_handovers", __package__)
TTL_MS = 90 * 86_400_000  # for which the counts of a queue that hands over nothing are stored


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


def count(queue: Primitive, *, sent: int, failed: int, error: str, to: str) -> ScriptCall:
    """Return the step that counts jobs that were handed over to a sink, and failures."""
    return COUNT_HANDOVERS(queue.key(""), sent, failed, calls.cut(error), to, TTL_MS)


def merged(counts: HandOvers, other: HandOvers) -> HandOvers:
    """Return the counts of two shards as one, with the later error."""
    latest = max(counts, other, key=lambda each: each.failed_at or 0)
    sent_at = max(filter(None, (counts.sent_at, other.sent_at)), default=None)
    return latest._replace(sent=counts.sent + other.sent, failed=counts.failed + other.failed, sent_at=sent_at)


def counted(reply: list[bytes]) -> HandOvers | None:
    """Return the counts in the reply of the script; None if nothing was handed over."""
    fields: Mapping[bytes, bytes] = dict(zip(reply[::2], reply[1::2], strict=True))

    def number(name: bytes) -> int:
        text = fields.get(name, b"0")
        return int(text) if text.isdigit() else 0

    if not fields:
        return None
    sent_at, failed_at = (number(name) / 1000 or None for name in (b"sent_at", b"failed_at"))
    error, to = (fields.get(name, b"").decode("utf-8", "backslashreplace") for name in (b"error", b"to"))
    return HandOvers(number(b"sent"), number(b"failed"), sent_at, failed_at, error, to)
