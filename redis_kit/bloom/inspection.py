"""What can be read of filters: all of a connection, and one of them."""

from typing import Any, NamedTuple

from redis_kit.bloom import keys
from redis_kit.bloom.generations import Shape
from redis_kit.bloom.settings import BloomSettings
from redis_kit.bloom.sizes import Parameters, joined_error
from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.keys import encode
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call

DESCRIBE = scripts.load(__package__, "describe")


class FilterInfo(NamedTuple):
    """A filter as it is stored. ``memory`` is the bytes of its bitmaps, ``error`` the one to be expected now.

    ``fill`` is the share of its capacity that is used. It is ``complete`` from a rebuild until the server restarts, or
    an add fails. Only then may it answer for the rows of a model.
    """

    name: str
    items: int
    fill: float
    layers: int
    memory: int
    error: float
    capacity: int
    target_error: float
    window: float
    complete: bool
    rebuilding: bool

    @classmethod
    def parse(cls, name: str, reply: list[Any]) -> "FilterInfo | None":
        """Return what the script ``describe`` replied; None if there is no filter."""
        pairs, lease, run_id = reply
        fields = {field.decode(): value.decode() for field, value in zip(pairs[::2], pairs[1::2], strict=True)}
        shape = Shape.parse(fields.get("shape", ""))
        if not shape.generations:
            return None
        parameters = Parameters.parse(fields["parameters"])
        errors, items, capacity = [], 0, 0
        for generation in shape.active:
            for number in range(1, generation.layers + 1):
                layer = parameters.layer(number)
                count = int(fields.get(f"items:{generation.id}:{number}", 0))
                errors.append(layer.error(count))
                items, capacity = items + count, capacity + layer.capacity
        layers = [parameters.layer(number + 1) for each in shape.generations for number in range(each.layers)]
        newest = shape.active[0].id if shape.active else ""
        return cls(
            name,
            items,
            items / capacity if capacity else 0.0,
            max((generation.layers for generation in shape.active), default=1),
            sum(bits + 7 >> 3 for layer in layers for bits in layer.parts),
            joined_error(errors),
            parameters.capacity,
            parameters.error,
            parameters.window,
            fields.get("complete") == f"{newest} {run_id.decode()}",
            bool(lease),
        )


class Filters(Primitive):
    """All filters of a connection."""

    component, settings = "bloom", BloomSettings

    def __init__(self, using: str) -> None:
        super().__init__("filters", using=using)

    def read(self, start: int, count: int) -> tuple[int, list[FilterInfo]]:
        """Return how many filters there are, and some of them by name. Two round trips."""
        result: tuple[int, list[FilterInfo]] = self.run_flow(read(start, count))
        return result

    def find(self, name: str) -> FilterInfo | None:
        """Return one filter; None if there is none with this name. One round trip."""
        result: FilterInfo | None = self.run_flow(_describe(name))
        return result


def read(start: int, count: int) -> Flow[tuple[int, list[FilterInfo]]]:
    """Return the number of filters, and some of them in the order of their names. Two round trips."""
    index = keys.filters()
    total, names = yield Batch([Call("ZCARD", index), Call("ZRANGE", index, start, start + count - 1)])
    found = yield from gather([_describe(name.decode()) for name in names], combine=True)
    return int(total), [info for info in found if info]


def _describe(name: str) -> Flow[FilterInfo | None]:
    tag = f"bloom:{encode(name)}"
    return FilterInfo.parse(name, (yield DESCRIBE([keys.state(tag), keys.lease(tag)])))
