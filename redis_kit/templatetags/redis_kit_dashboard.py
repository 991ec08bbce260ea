"""Template filters, in the folder where Django looks for them."""

from redis_kit.dashboard.tags import register

__all__ = ["register"]
