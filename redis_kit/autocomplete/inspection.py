"""The state of indexes: of one, or of all on a connection."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from redis_kit.autocomplete.settings import AutocompleteSettings
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.indexes.generations import Generation, Generations, Shape, names
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call


class IndexParameters(NamedTuple):
    """The parameters of an index, which are stored with it."""

    unique_ids: bool

    @classmethod
    def parse(cls, text: str) -> "IndexParameters":
        """Return the parameters that a server has stored."""
        return cls(text == "unique ids")

    def __str__(self) -> str:
        return "unique ids" if self.unique_ids else "ids of scopes"

    @property
    def described(self) -> str:
        """Return them in words, for a message."""
        return f"unique_ids={self.unique_ids}"


class IndexInfo(NamedTuple):
    """An index as it is stored. ``memory`` is an estimate of the server, in bytes.

    ``scopes`` is the number of scopes that have got entries. An index is ``complete`` from a rebuild until the server
    restarts, or an entry of a model could not be stored.
    """

    name: str
    entries: int
    scopes: int
    memory: int
    complete: bool
    rebuilding: bool
    unique_ids: bool


class _Stored(Primitive):
    """An index whose parameters are those that are stored."""

    component, settings = "autocomplete", AutocompleteSettings


def generations_of(index: Primitive, *, unique_ids: bool = False) -> Generations:
    """Return the generations of an index: each has terms, entries and scopes."""

    def keys(generation: Generation) -> dict[str, int]:
        return {index.key(f"{part}:{generation.id}"): 0 for part in ("terms", "entries", "scopes")}

    return Generations(index, IndexParameters(unique_ids), keys)


def read_indexes(using: str, start: int, count: int) -> Flow[tuple[int, list[IndexInfo]]]:
    """Return the number of indexes, and some of them by name. Two round trips; one more if a generation is new."""
    total, members, server = yield Batch(
        [
            Call("ZCARD", names("autocomplete")),
            Call("ZRANGE", names("autocomplete"), start, start + count - 1),
            Call("INFO", "server"),
        ]
    )
    found = yield from gather([_describe(_Stored(name.decode(), using=using), server) for name in members])
    return int(total), [info for info in found if info]


def list_indexes(using: str, *, start: int = 0, count: int = 100) -> tuple[int, list[IndexInfo]]:
    """See read_indexes()."""
    result: tuple[int, list[IndexInfo]] = _Stored("indexes", using=using).run_flow(read_indexes(using, start, count))
    return result


def find_index_info(name: str, using: str) -> IndexInfo | None:
    """Return one index; None if there is none with this name. Two or three round trips."""
    stored = _Stored(name, using=using)
    info: IndexInfo | None = stored.run_flow(describe(stored))
    return info


def describe(index: Primitive) -> Flow[IndexInfo | None]:
    """Return what is stored of an index."""
    server = yield Call("INFO", "server")
    return (yield from _describe(index, server))


def _describe(index: Primitive, server: bytes) -> Flow[IndexInfo | None]:
    generations = generations_of(index)
    state, *sizes = yield from _read(index, generations.shape)
    parameters, shape = state[0], Shape.parse((state[1] or b"").decode())
    if parameters and shape != generations.shape:
        unique_ids = IndexParameters.parse(parameters.decode()).unique_ids
        generations = generations_of(index, unique_ids=unique_ids)
        generations.learn(parameters, state[1])
        state, *sizes = yield from _read(index, shape)
    if not state[1] or not shape.active:
        return None
    run_id = server.decode().partition("run_id:")[2][:40]
    lease, entries, scopes, *memory = sizes
    return IndexInfo(
        name=index.name,
        entries=entries,
        scopes=scopes,
        memory=sum(size or 0 for size in memory),
        complete=state[2] == f"{shape.active[0].id} {run_id}".encode(),
        rebuilding=bool(lease),
        unique_ids=IndexParameters.parse(state[0].decode()).unique_ids,
    )


def _read(index: Primitive, shape: Shape) -> Flow[Sequence[Any]]:
    id = shape.active[0].id if shape.active else ""
    terms, entries, scopes = (index.key(f"{part}:{id}") for part in ("terms", "entries", "scopes"))
    return (
        yield Batch(
            [
                Call("HMGET", index.key("state"), "parameters", "shape", "complete"),
                Call("GET", index.key("lease")),
                Call("HLEN", entries),
                Call("HLEN", scopes),
                *(Call("MEMORY", "USAGE", key) for key in (terms, entries, scopes)),
            ]
        )
    )
