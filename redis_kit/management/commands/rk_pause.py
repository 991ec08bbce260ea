"""Let a queue give out no jobs for a while."""

from redis_kit.queues.features.pause.command import Pause as Command

__all__ = ["Command"]
