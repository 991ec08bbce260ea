"""Show how full queues are, how long jobs wait, and what was done."""

from redis_kit.queues.commands.rk_queues import Command as Command
