"""The state of filters: of one, or of all on a connection."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, cast

from redis_kit.bloom.parameters import BloomParameters
from redis_kit.bloom.settings import BloomSettings
from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.indexes.generations import Shape, names
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call

DESCRIBE = scripts.load(__package__, "describe")


class FilterInfo(NamedTuple):
    """A filter as it is stored. ``memory`` is the bytes of its bitmaps, ``error`` the one to be expected now.

    ``fill`` is the share of its capacity that is used, ``layers`` the number of the largest generation. A filter is
    ``complete`` from a rebuild until the server restarts, or an add fails. Only then may it answer for the rows of a
    model.
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

    @property
    def is_full(self) -> bool:
        """Return whether it holds more values than planned, in further layers."""
        return self.items > self.capacity

    @classmethod
    def parse(cls, name: str, reply: Sequence[Any]) -> "FilterInfo | None":
        """Return what the script ``describe`` replied; None if there is no filter."""
        pairs, lease, identity = reply
        fields = {field.decode(): value.decode() for field, value in zip(pairs[::2], pairs[1::2], strict=True)}
        shape = Shape.parse(fields.get("shape", ""))
        if not shape.generations:
            return None
        parameters = BloomParameters.parse(fields["parameters"])
        active = [(each, number, parameters.layer(number)) for each in shape.active for number in range(each.layers)]
        counts = [int(fields.get(f"items:{each.id}:{number + 1}", 0)) for each, number, _layer in active]
        stored = [parameters.layer(number) for each in shape.generations for number in range(each.layers)]
        newest = shape.active[0].id if shape.active else ""
        return cls(
            name=name,
            items=sum(counts),
            fill=sum(counts) / max(1, sum(layer.capacity for _each, _number, layer in active)),
            layers=max((each.layers for each in shape.active), default=1),
            memory=sum(bits + 7 >> 3 for layer in stored for bits in layer.parts),
            error=1
            - prod(1 - layer.error(count) for (_each, _number, layer), count in zip(active, counts, strict=True)),
            capacity=parameters.capacity,
            target_error=parameters.error,
            window=parameters.window,
            complete=fields.get("complete") == f"{newest} {identity.decode()}",
            rebuilding=bool(lease),
        )


class _Stored(Primitive):
    """A filter whose parameters are those that are stored."""

    component, settings = "bloom", BloomSettings


def read_filters(using: str, start: int, count: int) -> Flow[tuple[int, list[FilterInfo]]]:
    """Return the number of filters, and some of them in the order of their names. Two round trips."""
    total, members = yield Batch(
        [Call("ZCARD", names("bloom")), Call("ZRANGE", names("bloom"), start, start + count - 1)]
    )
    filters = yield from gather([describe(_Stored(name.decode(), using=using)) for name in members], combine=True)
    return int(total), [info for info in filters if info]


def list_filters(using: str, *, start: int = 0, count: int = 100) -> tuple[int, list[FilterInfo]]:
    """See read_filters()."""
    result: tuple[int, list[FilterInfo]] = _Stored("filters", using=using).run_flow(read_filters(using, start, count))
    return result


def find_filter(name: str, using: str) -> FilterInfo | None:
    """Return one filter; None if there is none with this name. One round trip."""
    stored = _Stored(name, using=using)
    return cast("FilterInfo | None", stored.run_flow(describe(stored)))


def describe(index: Primitive) -> Flow[FilterInfo | None]:
    """Return what is stored of a filter. One round trip."""
    return FilterInfo.parse(index.name, (yield DESCRIBE([index.key("state"), index.key("lease")])))
