"""The state of a filter, as it is stored."""

from math import prod
from typing import Any, NamedTuple

from redis_kit.bloom.parameters import BloomParameters
from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.generations import Generation, Shape
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Call

DESCRIBE = scripts.load(__package__, "describe")


class FilterInfo(NamedTuple):
    """A filter as it is stored. ``memory`` is the bytes of its bitmaps, ``error`` the one to be expected now.

    ``fill`` is the used share of its capacity, ``layers`` the number of the largest generation, 0 before the first add.
    A filter of a model is ``complete`` from a rebuild until the server restarts or an add fails. For others it is None.
    """

    name: str
    using: str
    items: int
    fill: float
    layers: int
    memory: int
    error: float
    capacity: int
    target_error: float
    window: float
    of_model: bool
    complete: bool | None
    rebuilding: bool

    @property
    def is_overfull(self) -> bool:
        """Return whether it holds more values than planned, in further layers."""
        return self.items > self.capacity

    @classmethod
    def empty(cls, filter: Any) -> "FilterInfo":
        """Return the filter of a model that nothing was added to."""
        capacity, error, _window, _source = filter.parameters
        return cls(filter.name, filter.using, 0, 0.0, 0, 0, 0.0, capacity, error, 0.0, True, False, False)


def bitmaps(index: Primitive, generation: Generation, parameters: BloomParameters) -> dict[str, int]:
    """Return the keys of a generation, each with its bits."""
    return {
        index.key(f"bits:{generation.id}:{number}:{part}"): bits
        for number in range(generation.layers)
        for part, bits in enumerate(parameters.of(generation).layer(number).parts)
    }


def describe(index: Primitive, source: str = "") -> Flow[FilterInfo | None]:
    """Return what is stored of a filter; with the source of a model's filter, whether it is complete.

    One round trip, and one more if it is complete unless the server has evicted a bitmap.
    """
    pairs, lease, complete = yield DESCRIBE([index.key("state"), index.key("lease")], [source])
    fields = {field.decode(): value.decode() for field, value in zip(pairs[::2], pairs[1::2], strict=True)}
    shape = Shape.parse(fields.get("shape", ""))
    if not shape.generations:
        return None
    parameters = BloomParameters.parse(fields["parameters"])
    if source and complete:
        keys = [key for each in shape.generations for key in bitmaps(index, each, parameters)]
        complete = (yield Call("EXISTS", *keys)) == len(keys)
    active = [(each, number) for each in shape.active for number in range(each.layers)]
    counts = [int(fields.get(f"items:{each.id}:{number + 1}", 0)) for each, number in active]
    layers = parameters.layers(shape)
    newest = parameters.of(shape.generations[0])
    # Each generation of a model's filter has all rows.
    counted = shape.active[0].layers if newest.source and shape.active else len(active)
    return FilterInfo(
        name=index.name,
        using=index.using,
        items=sum(counts[:counted]),
        fill=sum(counts[:counted]) / max(1, sum(layer.capacity for layer in layers[:counted])),
        layers=max((each.layers for each in shape.active), default=1),
        memory=sum(bits + 7 >> 3 for layer in layers for bits in layer.parts),
        error=1 - prod(1 - layer.error(count) for layer, count in zip(layers, counts, strict=False)),
        capacity=newest.capacity,
        target_error=newest.error,
        window=newest.window,
        of_model=bool(newest.source),
        complete=bool(complete) if source else None,
        rebuilding=bool(lease),
    )
