"""``manage.py rk_autocomplete``: lists indexes, and rebuilds those of models."""

from typing import Any

from redis_kit.autocomplete.index import Autocomplete
from redis_kit.autocomplete.inspection import IndexInfo, read_indexes
from redis_kit.autocomplete.model_autocomplete import ModelAutocomplete
from redis_kit.autocomplete.settings import AutocompleteSettings
from redis_kit.core import conf
from redis_kit.core.indexes.command import IndexCommand


class Command(IndexCommand):
    """List and rebuild indexes."""

    help = "Show indexes for autocomplete, and rebuild those of models."
    kind = ModelAutocomplete
    titles = ("INDEX", "ENTRIES", "SCOPES", "COMPLETE")
    empty = "There are no indexes."

    def read(self, using: str | None, limit: int) -> tuple[int, list[IndexInfo]]:
        """See IndexCommand.read()."""
        using = using or conf.section(AutocompleteSettings).USING
        return Autocomplete("indexes", using=using).run_flow(read_indexes(using, 0, limit))

    def cells(self, index: Any) -> tuple[str, ...]:
        """See IndexCommand.cells()."""
        return (
            index.name,
            f"{index.entries:,}",
            f"{index.scopes:,}",
            "rebuilding" if index.rebuilding else "yes" if index.complete else "no",
        )
