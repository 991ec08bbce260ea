"""``manage.py rk_autocomplete``: lists indexes, clears one, and rebuilds those of models."""

from typing import Any

from redis_kit.autocomplete.inventory import all_indexes
from redis_kit.core.indexes.command import IndexCommand


class Command(IndexCommand):
    """List, clear and rebuild indexes."""

    help = "Show and clear indexes for autocomplete, and rebuild those of models."
    inventory = all_indexes
    example = "app and model, such as shop.Author"
    titles = ("INDEX", "CONNECTION", "ENTRIES", "SCOPES", "COMPLETE")

    def cells(self, index: Any) -> tuple[str, ...]:
        """See IndexCommand.cells()."""
        complete = ("yes" if index.complete else "no") if all_indexes.is_of_model(index) else "-"
        state = "rebuilding" if index.rebuilding else complete
        return (index.name, index.using, f"{index.entries:,}", f"{index.scopes:,}", state)
