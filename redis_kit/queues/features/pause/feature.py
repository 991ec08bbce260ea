"""Pauses: a queue accepts jobs and gives out none, for a time or until it is resumed."""

from redis_kit.queues.engine.feature import Feature


class Pauses(Feature):
    """A queue is paused while its key ``paused`` exists. A queue that is not has no part of this in its claims."""

    name = "pause"
    bits = {16: "paused"}
    provides = {"pausing": "redis_kit.queues.features.pause.store"}
