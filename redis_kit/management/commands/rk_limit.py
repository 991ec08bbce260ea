"""List the limits of a queue, and change them."""

from redis_kit.queues.commands.rk_limit import Command

__all__ = ["Command"]
