"""The state of an index."""

from functools import lru_cache, partial
from typing import NamedTuple

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.generations import Generation, Generations, Shape
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call

SEARCH = scripts.load(__package__, "search")


class IndexParameters(str):
    """Whether an id is in one scope, which is stored with an index."""

    __slots__ = ()
    described = property(str)

    @classmethod
    def parse(cls, text: str) -> "IndexParameters":
        """Return what a server has stored."""
        return cls(text)


UNIQUE, SCOPED = IndexParameters("unique_ids=True"), IndexParameters("unique_ids=False")


class IndexInfo(NamedTuple):
    """An index as it is stored. ``scopes`` is the number of scopes that have got entries.

    It is ``complete`` from a rebuild until the server restarts, or an entry of a model could not be stored.
    """

    name: str
    using: str
    entries: int
    scopes: int
    complete: bool
    rebuilding: bool
    unique_ids: bool


def generations_of(index: Primitive, parameters: IndexParameters) -> Generations:
    """Return the generations of an index: each has terms, entries and scopes."""
    return Generations(index, parameters, partial(_sizes, index.key("")))


def _sizes(start: str, generation: Generation, _parameters: IndexParameters) -> dict[str, int]:
    return dict.fromkeys(_keys(start, generation), 0)


@lru_cache(maxsize=1024)
def requested(state: str, shape: Shape) -> tuple[list[str], str]:
    """Return the keys that a search reads, and the text of the shape. A search has no time to make them each time."""
    start = state.removesuffix("state")
    return [state, *(key for each in shape.active for key in _keys(start, each))], str(shape)


def _keys(start: str, generation: Generation) -> list[str]:
    return [f"{start}{part}:{generation.id}" for part in ("terms", "entries", "scopes")]


def describe(index: Primitive) -> Flow[IndexInfo | None]:
    """Return what is stored of an index. One round trip; two if a generation is new to this process."""
    generations, reply = generations_of(index, SCOPED), [b"stale"]
    while reply[0] == b"stale":
        shape = generations.shape
        keys, known = requested(generations.state, shape)
        probe = SEARCH(keys, ["", known, 1, "", "", 1, 1, 0, "", "\1"])
        calls = [Call("GET", generations.lease), Call("HGET", generations.state, "parameters")]
        calls += [Call("HLEN", key) for key in keys[2:]]
        reply, lease, parameters, *counts = yield Batch([probe, *calls])
        if reply[0] == b"stale":
            generations.learn(None, reply[2])
    if not shape.active:
        return None
    complete = isinstance(reply, bytes) or (reply[0] == b"empty" and not counts[0])
    return IndexInfo(
        index.name, index.using, counts[0], counts[1], complete, bool(lease), parameters.decode() == UNIQUE
    )
