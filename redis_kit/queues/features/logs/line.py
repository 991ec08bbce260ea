"""The lines that jobs log while they run, as they are stored: ``[<ms since 1970>, level, logger, attempt, text]``."""

import json
from datetime import datetime
from typing import NamedTuple

from redis_kit.queues.engine import history

BEGIN, END = 500, 1500  # characters of a longer text: the end of a traceback tells most


class LogLine(NamedTuple):
    """A line that a job logged, on the clock of its worker. ``attempt`` counts from 1."""

    at: datetime
    level: str
    logger: str
    attempt: int
    text: str


def dumps(seconds: float, level: str, logger: str, attempt: int, text: str) -> bytes:
    """Return a line as it is stored, with its middle cut out if it is long."""
    short = text if len(text) <= BEGIN + END else f"{text[:BEGIN]} … {text[-END:]}"
    values = [int(seconds * 1000), level, logger, attempt, _encodable(short)]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def loads(stored: bytes) -> LogLine | None:
    """Return a stored line; None if it can't be read."""
    try:
        milliseconds, level, logger, attempt, text = json.loads(stored)
        level, logger, text = (_encodable(str(each)) for each in (level, logger, text))
        return LogLine(history.milliseconds(int(milliseconds)), level, logger, int(attempt), text)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
