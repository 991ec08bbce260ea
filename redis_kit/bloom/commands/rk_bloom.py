"""``manage.py rk_bloom``: lists filters, and rebuilds those of models."""

from typing import Any

from redis_kit.bloom.inspection import FilterInfo, list_filters
from redis_kit.bloom.model_filter import ModelFilter
from redis_kit.bloom.settings import BloomSettings
from redis_kit.core import conf
from redis_kit.core.indexes.command import IndexCommand
from redis_kit.core.text import byte_size


class Command(IndexCommand):
    """List and rebuild filters."""

    help = "Show Bloom filters, and rebuild those of models."
    kind = ModelFilter
    titles = ("FILTER", "VALUES", "FILL", "LAYERS", "ERROR", "MEMORY", "COMPLETE")
    empty = "There are no filters."

    def read(self, using: str | None, limit: int) -> tuple[int, list[FilterInfo]]:
        """See IndexCommand.read()."""
        return list_filters(using or conf.section(BloomSettings).USING, count=limit)

    def cells(self, index: Any) -> tuple[str, ...]:
        """See IndexCommand.cells()."""
        return (
            index.name,
            f"{index.items:,}",
            f"{index.fill:.0%}",
            str(index.layers),
            f"{index.error:.3g}",
            byte_size(index.memory),
            "rebuilding" if index.rebuilding else "yes" if index.complete else "no",
        )
