"""List the limits of a queue, and change them."""

from redis_kit.queues.features.limits.command import Command as Command
