"""Template tags, in the folder where Django looks for them."""

from redis_kit.pageviews.tags import register

__all__ = ["register"]
