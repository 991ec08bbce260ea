"""Recent log records of each level, and the most common messages of each hour, for the dashboard."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.logs.buffer import Counts, counts, flush
    from redis_kit.logs.handler import RedisHandler
    from redis_kit.logs.inspection import LogHour, Logs, Message
    from redis_kit.logs.record import StoredRecord

__all__ = ["Counts", "LogHour", "Logs", "Message", "RedisHandler", "StoredRecord", "counts", "flush"]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "buffer": ("Counts", "counts", "flush"),
        "handler": ("RedisHandler",),
        "inspection": ("LogHour", "Logs", "Message"),
        "record": ("StoredRecord",),
    },
)
