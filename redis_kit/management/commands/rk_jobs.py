"""List jobs."""

from redis_kit.queues.commands.rk_jobs import Command as Command
