"""Autocomplete as a component."""

from django.utils.translation import gettext_lazy as _

from redis_kit.autocomplete.settings import AutocompleteSettings
from redis_kit.core.component import Component


class Autocomplete(Component):
    """Texts that are found by the beginnings of their words, and recent lists."""

    settings = AutocompleteSettings
    commands = (
        "exists get hdel hget hincrby hlen hmget hset hsetnx info lpush lrange lrem ltrim persist pexpire set setbit "
        "strlen unlink zadd zcard zrange zrangebylex zrangebyscore zrem zrevrangebylex zscore"
    )
    panels = ("redis_kit.autocomplete.dashboard.panel.AutocompletePanel",)
    group = _("Filters and indexes")
    metrics = ("redis_kit.autocomplete.metrics.AutocompleteMetrics",)
