"""Recent log records of each level, and the most common messages of each hour, for the dashboard."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.logs.handler import RedisHandler as RedisHandler
    from redis_kit.logs.inspection import Logs as Logs

_PUBLIC: dict[str, tuple[str, ...]] = {
    "handler": ("RedisHandler",),
    "inspection": ("Logs",),
}
__all__ = [name for names in _PUBLIC.values() for name in names]
__getattr__, __dir__ = lazily(__name__, _PUBLIC)
