"""The work of this thread or task, such as a job: locks record it, to tell what their holder does, and logs have it."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

Fields = Callable[[], Mapping[str, Any]]
# Such as "job shop.tasks.send_mail 01jd3m", or "" if unknown. Code that sets it must also reset it.
current_work: ContextVar[str] = ContextVar("redis_kit_current_work", default="")
# Returns the same as fields of a log line, such as the queue and the id of a job.
current_fields: ContextVar[Fields | None] = ContextVar("redis_kit_current_fields", default=None)
