"""Recent log records of each level, and the most common messages of each hour, for the dashboard."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.logs.handler import RedisHandler
    from redis_kit.logs.inspection import Logs

__all__ = ["Logs", "RedisHandler"]

__getattr__, __dir__ = lazily(__name__, {"handler": ("RedisHandler",), "inspection": ("Logs",)})
