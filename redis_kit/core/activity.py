"""What this thread or task does, such as a job: locks record it, to tell what their holder does, and logs have it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


class Activity:
    """One thing that a thread or task does; what it does not say is as for the one around it.

    ``work`` is a text such as "job shop.tasks.send_mail 01jd3m", or "". ``fields`` returns the same as fields of a log
    line. ``running`` is the job that a worker runs here.
    """

    work = ""
    fields: Callable[[], Mapping[str, Any]] | None = None
    running: Any = None

    def __init__(self, work: str, fields: Callable[[], Mapping[str, Any]] | None) -> None:
        outer = current.get()
        self.work, self.fields, self.running = work or outer.work, fields or outer.fields, outer.running


current: ContextVar[Activity] = ContextVar("redis_kit_activity", default=object.__new__(Activity))  # noqa: B039 -- nothing changes it


@contextmanager
def doing(work: str = "", *, fields: Callable[[], Mapping[str, Any]] | None = None) -> Iterator[None]:
    """Note what this thread or task does in the block."""
    token = current.set(Activity(work, fields))
    try:
        yield
    finally:
        current.reset(token)
