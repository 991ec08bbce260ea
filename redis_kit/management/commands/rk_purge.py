"""Delete the jobs of a queue that are in one state."""

from redis_kit.queues.commands.rk_purge import Command as Command
