"""Cancellation: a job that waits is removed, and the worker of one that runs is told to stop it."""

from redis_kit.queues.engine.feature import Feature


class Cancellation(Feature):
    """Marks of running jobs that are to be cancelled. They end when their attempt does, or when a worker stops them."""

    name = "cancel"
    bits = {4: "marks"}
    provides = {"canceller": "redis_kit.queues.features.cancel.store.cancel"}
