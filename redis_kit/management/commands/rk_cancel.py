"""Cancel jobs."""

from redis_kit.queues.features.cancel.command import Command

__all__ = ["Command"]
