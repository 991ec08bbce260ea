"""Here because Django looks here."""

from redis_kit.signins.tags import register

__all__ = ["register"]
