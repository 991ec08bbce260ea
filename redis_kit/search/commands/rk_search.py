"""``manage.py rk_search``: lists indexes, rebuilds them, and writes the changes that wait."""

from typing import Any

from django.core.management.base import CommandError

from redis_kit.core.errors import InvalidValue, RebuildRunning
from redis_kit.core.indexes.command import IndexCommand
from redis_kit.core.indexes.model_index import find_index
from redis_kit.core.text import byte_size, clean
from redis_kit.search.index import SearchIndex
from redis_kit.search.inventory import all_indexes


class Command(IndexCommand):
    """List, rebuild, refresh and clear indexes."""

    help = "Show search indexes, rebuild or clear them, and write the changes that wait."
    inventory = all_indexes
    titles = ("INDEX", "CONNECTION", "DOCUMENTS", "WORDS", "MEMORY", "WAITING", "SEARCHES", "EMPTY", "SLOW", "COMPLETE")
    example = "app and class, such as shop.ProductIndex"
    actions = {**IndexCommand.actions, "refresh": "write the changes that wait, such as those of a process that died"}

    def cells(self, index: Any) -> tuple[str, ...]:
        """See IndexCommand.cells()."""
        sizes = (f"{index.documents:,}", f"{index.words:,}", byte_size(index.memory), f"{index.waiting:,}")
        searches = (f"{index.searches:,}", f"{index.empty:,}", f"{index.slow:,}")
        return (
            index.name,
            index.using,
            *sizes,
            *searches,
            "rebuilding" if index.rebuilding else "yes" if index.complete else "no",
        )

    def _refresh(self, *, name: str, **options: Any) -> None:
        try:
            index = find_index(SearchIndex, name)
            count = index.refresh()
        except (InvalidValue, RebuildRunning) as error:
            raise CommandError(clean(str(error))) from error
        self.report(f"{index.name}: {count:,} rows.", {"name": index.name, "rows": count}, as_json=options["json"])
