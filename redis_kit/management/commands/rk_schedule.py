"""Show when periodic tasks run next; pause, resume or run one."""

from redis_kit.queues.commands.rk_schedule import Command

__all__ = ["Command"]
