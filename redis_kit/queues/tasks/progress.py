"""The job that runs here, and how far it is. Imports no Redis client, since modules of tasks import it."""

import contextlib
import math
from collections.abc import Callable
from contextvars import ContextVar, Token
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from redis_kit.core.errors import InvalidValue, PoolExhausted, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.text import shortened
from redis_kit.queues.jobs import history, payload
from redis_kit.queues.jobs.job import Job, LeaseLost
from redis_kit.queues.jobs.payload import CorruptMessage

if TYPE_CHECKING:
    from redis_kit.queues.queue import Queue

PAUSE = 0.1  # seconds between two that are sent
NOTE = 500  # characters


class Progress(NamedTuple):
    """What a task told of how far it is, and when, on the server's clock; ``total`` is None where it did not say."""

    done: float
    total: float | None
    note: str
    at: datetime


class Running:
    """The job that a thread or an event loop's task works on. ``keeps`` tells for how many ms its result is kept."""

    def __init__(self, queue: "Queue", job: Job, keeps: Callable[..., int] | None) -> None:
        self.queue, self.job, self.keeps = queue, job, keeps
        self._again, self._complete = 0.0, False

    def let(self, done: float, total: float | None) -> bool:
        """Say whether to send this now: ten times a second, and at once what first says that all is done."""
        now, complete = monotonic(), total is not None and done >= total
        if now < self._again and (self._complete or not complete):
            return False
        self._again, self._complete = now + PAUSE, complete
        return True


_current: ContextVar[Running | None] = ContextVar("redis_kit_running", default=None)


def begin(queue: "Queue", job: Job, keeps: Callable[..., int] | None) -> Token[Running | None]:
    """Note that a job begins here; ``keeps`` is None where no result is stored."""
    return _current.set(Running(queue, job, keeps))


def end(token: Token[Running | None]) -> None:
    """Note that it has ended."""
    _current.reset(token)


def progress(done: float, total: float | None = None, note: str = "") -> None:
    """Tell how far the task that runs here is; others read it as ``result.progress``. One round trip, or none.

    Ten calls a second are sent, the others left out, but for the first that says that all is done. Nothing is told
    while Redis is away, of a job whose result is not stored, and where no worker runs the task. A note is cut to 500
    characters. Raises InvalidValue, and LeaseLost where another worker has the job by now: then stop.
    """
    if found := _asked(done, total, note):
        with contextlib.suppress(RedisUnavailable, PoolExhausted):
            found.queue._run(_tell(found, done, total, note))


async def aprogress(done: float, total: float | None = None, note: str = "") -> None:
    """See progress()."""
    if found := _asked(done, total, note):
        with contextlib.suppress(RedisUnavailable, PoolExhausted):
            await found.queue._arun(_tell(found, done, total, note))


def read(kept: bytes | None) -> Progress | None:
    """Return what a result holds of its call's progress; None where it was not told, or makes no sense."""
    moment, _, told = (kept or b"").partition(b" ")
    try:
        done, total, note = payload.loads(told)
        for name, value in (("done", done), ("total", done if total is None else total)):
            _number(name, value)
        return Progress(done, total, str(note), history.milliseconds(int(moment)))
    except (CorruptMessage, ValueError, TypeError, OverflowError):
        return None


def _asked(done: Any, total: Any, note: Any) -> Running | None:
    """Return the job of which this is to be told now; None where nobody could read it, or it came too soon."""
    for name, value in (("done", done), ("total", total)):
        if not (value is None and name == "total"):
            _number(name, value)
    if not isinstance(note, str):
        raise InvalidValue(f"note must be text, not {shortened(note)}.")
    found = _current.get()
    return found if found and found.keeps and found.let(done, total) else None


def _number(name: str, value: Any) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value < 2**63 or math.isnan(value):
        raise InvalidValue(f"{name} must be a number of 0 or more, not {shortened(value)}.")


def _tell(found: Running, done: float, total: float | None, note: str) -> Flow[None]:
    from redis_kit.queues.store import calls

    keep = found.keeps(failed=True) if found.keeps else 0
    text = note[:NOTE].encode("utf-8", "backslashreplace").decode()
    told = payload.dumps([done, total, text], "The progress")
    if not (yield calls.progress(found.queue.key(""), found.job, told=told, keep=keep)):
        raise LeaseLost(f"The claim on job {found.job.id!a} of queue {found.queue.name!a} is over.")
