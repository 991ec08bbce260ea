"""Shards: the jobs of one busy queue on several nodes of a Cluster."""

from redis_kit.queues.engine.feature import Feature


class Shards(Feature):
    """The option ``SHARDS`` of queues."""

    name = "shards"
    provides = {"spread": "redis_kit.queues.features.shards.spread.ShardedQueues"}
