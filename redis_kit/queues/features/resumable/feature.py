"""Resumable tasks: loops over rows that go on where they were when their worker stopped."""

from redis_kit.queues.engine.feature import Feature


class Resumable(Feature):
    """A task uses it by resumable(): nothing else has to know."""

    name = "resumable"
