"""Bloom filters as a component."""

from redis_kit.bloom.settings import BloomSettings
from redis_kit.core.component import Component


class Bloom(Component):
    """Bloom filters, and look-ups of models that ask them first."""

    settings = BloomSettings
    commands = (
        "exists get getbit hdel hget hgetall hincrby hmget hset hsetnx info pexpire set setbit unlink zadd zcard "
        "zrange zrem"
    )
