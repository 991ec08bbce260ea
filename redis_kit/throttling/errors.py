"""Exceptions of throttles."""

from redis_kit.core.errors import InvalidRate

__all__ = ["InvalidRate"]
