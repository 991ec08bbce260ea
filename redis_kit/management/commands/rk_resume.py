"""End a queue's pause."""

from redis_kit.queues.commands import changes

Command = changes.Resume
