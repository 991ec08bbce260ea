"""Bloom filters as a component."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.core import checks
from django.utils.translation import gettext_lazy as _

from redis_kit.bloom.settings import BloomSettings
from redis_kit.core import conf
from redis_kit.core.component import Component
from redis_kit.core.errors import RedisKitError


class Bloom(Component):
    """Bloom filters, and look-ups of models that ask them first."""

    settings = BloomSettings
    commands = (
        "exists get getbit hdel hget hgetall hincrby hlen hmget hset hsetnx info pexpire set setbit strlen unlink zadd "
        "zcard zrange"
    )
    panels = ("redis_kit.bloom.dashboard.panel.BloomPanel",)
    group = _("Filters and indexes")
    permissions = (("change_indexes", "Can clear and rebuild filters and indexes"),)
    metrics = ("redis_kit.bloom.metrics.BloomMetrics",)

    def ready(self) -> None:
        """Register the check of full filters, which asks the server."""
        checks.register(_check_full, "redis_kit", deploy=True)


def _check_full(**kwargs: Any) -> Iterator[checks.CheckMessage]:
    from redis_kit.bloom.inspection import list_filters

    with suppress(RedisKitError):  # other checks report it
        for info in list_filters(conf.section(BloomSettings).USING, count=1000)[1]:
            if info.is_full:
                held = f"{info.layers} layers: it holds {info.items:,} values, and its capacity is {info.capacity:,}"
                hint = "Each layer makes calls slower. Clear it, and give it a larger capacity."
                yield checks.Warning(f"The Bloom filter {info.name!r} has {held}.", hint=hint, id="redis_kit.W026")
