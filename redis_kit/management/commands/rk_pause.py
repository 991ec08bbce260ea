"""Let a queue give out no jobs for a while."""

from redis_kit.queues.commands import changes

Command = changes.Pause
