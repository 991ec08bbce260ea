"""Limits: how many jobs run at once, and how many start in a time; groups, which take turns."""

from redis_kit.queues.engine.feature import Feature


class Limits(Feature):
    """The options ``group``, ``concurrency``, ``rate`` and ``limits``, and the limits that are set at run time."""

    name = "limits"
    bits = {1: "lanes", 64: "rules"}
    provides = {"lanes": "redis_kit.queues.features.limits.lanes"}
