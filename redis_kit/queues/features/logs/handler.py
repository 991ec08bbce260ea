"""Log lines of jobs, for their pages on the dashboard. Imports neither models nor a client: ``LOGGING`` names it.

Lines are stored as ``[<ms since 1970>, level, logger, attempt, text]``.
"""

import json
import logging
from datetime import datetime
from typing import NamedTuple

from redis_kit.core.values.numbers import seconds, whole_number
from redis_kit.queues.engine import history

LINES = (1, 1000)
TTL = (1.0, 2_592_000.0)  # seconds
BEGIN, END = 500, 1500  # characters of a longer text: the end of a traceback tells most


class JobLogHandler(logging.Handler):
    """Stores what jobs of the kit log, also on Celery's workers; for ``LOGGING``. The page of a job shows the lines.

    The latest ``lines`` (1 to 1000) of each job are stored, for ``ttl`` seconds (1 to 2,592,000) after the last one.
    A text has at most 2000 characters. Worker processes send lines every second, 100 jobs in a round trip, those of
    Celery after each job and with each heartbeat. A process that is killed loses what it has not sent. Lines are
    dropped while Redis is unavailable. Raises InvalidValue.
    """

    def __init__(self, level: int | str = logging.NOTSET, *, lines: int = 100, ttl: float = 259_200.0) -> None:
        super().__init__(level)
        self.lines = whole_number("lines", lines, LINES)
        self.ttl_ms = int(seconds("ttl", ttl, TTL) * 1000)

    def emit(self, record: logging.LogRecord) -> None:
        """Note a line of the job that runs here, if one does. No round trip."""
        # Here, as a wrong task framework must not be an error of LOGGING.
        from redis_kit.queues.tasks import current_job

        current = current_job.get()
        buffer = current.parts.get("logs") if current else None
        if current is None or buffer is None:
            return
        try:
            text, attempt = self.format(record), current.job.attempt
            line = dumps(record.created, record.levelname, record.name, attempt, text)
        except Exception:
            self.handleError(record)
            return
        buffer.add((current.number, current.job.id), line, self.lines, self.ttl_ms)


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
