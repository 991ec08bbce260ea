"""End a queue's pause."""

from redis_kit.queues.commands.rk_resume import Command as Command
