"""The progress of a job as it is stored: ``<ms since 1970> [done, total, note]``."""

import math
from datetime import datetime
from typing import Any, NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import is_number
from redis_kit.queues.engine import history, payload
from redis_kit.queues.errors import CorruptMessage

NOTE = 500  # characters


class Progress(NamedTuple):
    """How far a task said it is, and when, on the server's clock. ``total`` is None if the task did not give one."""

    done: float
    total: float | None
    note: str
    at: datetime


def dumps(done: float, total: float | None, note: str) -> bytes:
    """Return progress as JSON, to which the script adds the time. A note is cut to 500 characters."""
    text = note[:NOTE].encode("utf-8", "backslashreplace").decode()
    return payload.dumps([done, total, text], "The progress")


def loads(stored: bytes | None) -> Progress | None:
    """Return stored progress; None if there is none or it can't be read."""
    moment, _, values = (stored or b"").partition(b" ")
    try:
        done, total, note = payload.loads(values)
        check(done, total)
        return Progress(done, total, str(note), history.milliseconds(int(moment)))
    except (CorruptMessage, ValueError, TypeError, OverflowError):
        return None


def check(done: Any, total: Any) -> None:
    """Raise InvalidValue unless these are numbers of 0 or more; ``total`` may be None."""
    for name, value in (("done", done), ("total", done if total is None else total)):
        if not is_number(value) or not 0 <= value < 2**63 or math.isnan(value):
            raise InvalidValue(f"{name} must be a number of 0 or more, not {shortened(value)}.")
