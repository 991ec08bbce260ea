"""Search as a component."""

from django.utils.translation import gettext_lazy as _

from redis_kit.core.component import Component
from redis_kit.search.settings import SearchSettings


class Search(Component):
    """Indexes of the words of rows, and queries."""

    settings = SearchSettings
    commands = (
        "exists get hdel hget hgetall hincrby hlen hmget hrandfield hset hsetnx info memory|usage persist pexpire sadd "
        "scard set setbit smembers srem strlen unlink zadd zcard zdiffstore zintercard zinterstore zmscore zrange "
        "zrangebylex zrangebyscore zrangestore zrem zremrangebyrank zremrangebyscore zscore zunionstore"
    )
    panels = ("redis_kit.search.dashboard.panel.SearchPanel",)
    group = _("Filters and indexes")
    metrics = ("redis_kit.search.metrics.SearchMetrics",)
