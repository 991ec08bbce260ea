"""Unique keys: at most one job has a key at a time."""

from redis_kit.queues.engine.feature import Feature


class UniqueKeys(Feature):
    """The options ``unique``, ``unique_by`` and ``replace`` of tasks, and those of Queue.put()."""

    name = "unique"
    bits = {2: "unique"}
    provides = {"unique_keys": "redis_kit.queues.features.unique.keys"}
