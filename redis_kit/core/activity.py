"""What this thread or task works on, so that others can be told what a lock is held for."""

from contextvars import ContextVar

# Such as "job shop.tasks.send_mail 01jd3m"; "" where nobody said. Whoever sets it sets it back.
doing: ContextVar[str] = ContextVar("redis_kit_doing", default="")
