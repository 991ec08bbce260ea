"""The handler for ``LOGGING``."""

import logging
from typing import Any

from redis_kit.core.text import unexpected
from redis_kit.logs.buffer import buffer
from redis_kit.logs.record import entry_of


class RedisHandler(logging.Handler):
    """Store records for the dashboard. It never waits for Redis: a thread sends them in batches.

    It raises only what ends a process, such as SystemExit, since a signal's handler may do so at any time. All handlers
    share one buffer. While Redis is unavailable 10,000 records wait, and further ones are dropped.
    """

    def __init__(self, level: int | str = logging.NOTSET, **unknown: Any) -> None:
        if unknown:
            raise unexpected("RedisHandler", type(self), unknown, {"using": "Set REDIS_KIT['LOGS']['USING']."})
        super().__init__(level)

    def emit(self, record: logging.LogRecord) -> None:
        """Add a record to the buffer. Records of a thread that sends records are left out: they would never end."""
        if record.name == buffer.logger.name or buffer.is_sender():
            return
        try:
            entry = entry_of(record)
        except Exception:
            buffer.drop()
        else:
            buffer.add(entry)

    def flush(self) -> None:
        """Store the records that wait, for at most about two seconds. Python calls it when the process ends."""
        buffer.flush(2.0)
