"""Let dead jobs run again."""

from redis_kit.queues.commands.rk_retry import Command as Command
