"""End a queue's pause."""

from redis_kit.queues.features.pause.command import Resume as Command

__all__ = ["Command"]
