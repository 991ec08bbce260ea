"""Bloom filters as a component."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.core import checks
from django.utils.translation import gettext_lazy as _

from redis_kit.bloom.settings import BloomSettings
from redis_kit.core.component import Component
from redis_kit.core.errors import RedisKitError


class Bloom(Component):
    """Bloom filters, and look-ups of models that ask them first."""

    settings = BloomSettings
    commands = (
        "exists get getbit hdel hget hgetall hincrby hlen hmget hset hsetnx info persist pexpire set setbit strlen "
        "unlink zadd zcard zrange"
    )
    panels = ("redis_kit.bloom.dashboard.panel.BloomPanel",)
    group = _("Filters and indexes")
    permissions = (("change_indexes", "Can clear and rebuild filters and indexes"),)
    metrics = ("redis_kit.bloom.metrics.BloomMetrics",)

    def ready(self) -> None:
        """Register the check of full filters, which asks the server."""
        checks.register(_check_full, "redis_kit", deploy=True)

    def checks(self) -> Iterator[checks.CheckMessage]:
        """Yield what is wrong with the filters of models."""
        if module := sys.modules.get("redis_kit.bloom.model_filter"):  # else no model has one
            yield from module.problems()


def _check_full(**kwargs: Any) -> Iterator[checks.CheckMessage]:
    from redis_kit.bloom.inspection import filters

    with suppress(RedisKitError):  # other checks report it
        for info in filters.read_all().infos:
            if info.is_overfull:
                held = f"{info.layers} layers: it holds {info.items:,} values, and its capacity is {info.capacity:,}"
                hint = "Each layer makes calls slower. Give it a larger capacity, and rebuild or clear it."
                yield checks.Warning(f"The Bloom filter {info.name!r} has {held}.", hint=hint, id="redis_kit.W026")
