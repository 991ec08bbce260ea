"""Let dead jobs run again."""

from redis_kit.queues.commands import changes

Command = changes.Retry
