"""Logs as JSON, one line for each record. Imports neither models nor a client: ``LOGGING`` names it."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from redis_kit.core import activity
from redis_kit.core.logs.filters import MARK
from redis_kit.core.text import shortened
from redis_kit.core.tracing import spans

STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", MARK}


class JSONFormatter(logging.Formatter):
    """Formats a record as one line of JSON, for ``LOGGING``.

    Its fields are ``time`` (ISO 8601, UTC), ``level``, ``logger``, ``message``, ``process``; ``exception`` with a
    traceback; those given as ``extra``; while a job runs ``job``, ``queue``, ``task``, ``attempt`` and ``worker``; in a
    span of OpenTelemetry ``trace_id`` and ``span_id``. Values that JSON does not have are given as text.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        read = activity.current.get().fields
        more = {name: value for name, value in vars(record).items() if name not in STANDARD}
        fields = {**more, **spans.ids(), **(read() if read else {}), **fields}
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            fields["exception"] = record.exc_text
        if record.stack_info:
            fields["stack"] = record.stack_info
        return json.dumps({str(name): _plain(value) for name, value in fields.items()})


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    try:
        json.dumps(value, allow_nan=False)
    except Exception:  # of a type that JSON does not have, in a circle, or with a method that fails
        return shortened(value, 500)
    return value
