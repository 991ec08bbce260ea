"""Cancel jobs."""

from redis_kit.queues.features.cancel.command import Command as Command
