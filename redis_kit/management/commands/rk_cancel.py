"""Cancel jobs."""

from redis_kit.queues.commands.rk_cancel import Command

__all__ = ["Command"]
