"""Run the tasks of some queues."""

from redis_kit.queues.commands.rk_worker import Command as Command
