"""Let a queue give out no jobs for a while."""

from redis_kit.queues.commands.rk_pause import Command as Command
