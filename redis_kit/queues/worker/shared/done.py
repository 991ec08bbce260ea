"""Jobs that are done, and recent acknowledgements, which a server that dies may lose."""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from threading import Lock
from typing import NamedTuple

from redis_kit.queues.engine import done
from redis_kit.queues.engine.done import Ack, ack_of
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.queue import Queue
from redis_kit.queues.settings import options_of

MOST = 20_000  # acknowledgements
MOST_BYTES = 4 * 1024 * 1024  # of results and errors


class RecordedEnd(NamedTuple):
    """The end of a failed attempt, or one that a feature records. The body is not kept.

    ``record`` records it, and may be repeated.
    """

    token: bytes
    id: bytes
    value: bytes
    record: Callable[[], object]


class Done(NamedTuple):
    """A job that is done: its acknowledgement, and a call to make when the server has recorded that.

    ``again`` records more than the acknowledgement again, for a server that lost it; None if that is all.
    """

    job: Job
    ended: Ack
    announce: Callable[[], None] | None = None
    again: RecordedEnd | None = None


def done_of(job: Job, value: bytes, ttl_ms: int, *, source: Queue, number: int, seconds: float | None) -> Done:
    """Return a job of the queue with this number as done, with its result, if any, and for how long its task ran."""
    about = done.line(job, seconds) if options_of(source.name).DONE_LIMIT else b""
    return Done(job, ack_of(job, value, ttl_ms, source=number, about=about))


class RecentAcks:
    """Remembers the last 20,000 acknowledgements, with at most 4 MiB of results and errors, whatever their age.

    A server that was down for an hour has lost the seconds before that hour, so no time limit would fit.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._batches: deque[tuple[Sequence[Ack | RecordedEnd], int]] = deque()
        self._count = self._bytes = 0

    def add(self, batch: Sequence[Ack | RecordedEnd]) -> None:
        """Remember acknowledgements that were recorded together."""
        size = sum([len(ack.value) for ack in batch])
        with self._lock:
            self._batches.append((batch, size))
            self._count += len(batch)
            self._bytes += size
            while self._count > MOST or self._bytes > MOST_BYTES:
                oldest, size = self._batches.popleft()
                self._count -= len(oldest)
                self._bytes -= size

    def find(self, members: Collection[bytes]) -> dict[bytes, Ack | RecordedEnd]:
        """Return the acknowledgements of these claims that are remembered. A claim is named ``<token>/<id>``."""
        with self._lock:
            batches = list(self._batches)
        ends = {b"%b/%b" % (ack.token, ack.id): ack for batch, _ in batches for ack in batch}
        return {member: ends[member] for member in members if member in ends}
