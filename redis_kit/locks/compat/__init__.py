"""A lock like that of redis-py, and django-redis, on the locks of the kit."""

from redis_kit.locks.compat.lock import AsyncLock, Lock

__all__ = ["AsyncLock", "Lock"]
