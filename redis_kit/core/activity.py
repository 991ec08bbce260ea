"""The work of this thread or task, such as a job: locks record it, to tell what their holder does."""

from contextvars import ContextVar

# Such as "job shop.tasks.send_mail 01jd3m", or "" if unknown. Code that sets it must also reset it.
current_work: ContextVar[str] = ContextVar("redis_kit_current_work", default="")
