"""Show when periodic tasks run next; pause, resume or run one."""

from redis_kit.queues.features.schedules.command import Command as Command
