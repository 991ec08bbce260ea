"""``manage.py rk_bloom``: lists filters, clears one, and rebuilds those of models."""

from typing import Any

from redis_kit.bloom.inspection import filters
from redis_kit.core.indexes.command import IndexCommand
from redis_kit.core.text import byte_size


class Command(IndexCommand):
    """List, clear and rebuild filters."""

    help = "Show and clear Bloom filters, and rebuild those of models."
    inventory = filters
    titles = ("FILTER", "CONNECTION", "VALUES", "FILL", "LAYERS", "ERROR", "MEMORY", "COMPLETE")
    empty = "There are no filters."

    def cells(self, index: Any) -> tuple[str, ...]:
        """See IndexCommand.cells()."""
        numbers = (f"{index.items:,}", f"{index.fill:.0%}", str(index.layers), f"{index.error:.3g}")
        complete = {True: "yes", False: "no", None: "-"}[index.complete] if index.layers else "not built"
        state = "rebuilding" if index.rebuilding else complete
        return (index.name, index.using, *numbers, byte_size(index.memory), state)
