"""The state of indexes: of one, or of all on a connection."""

from typing import NamedTuple, cast

from redis_kit.autocomplete.settings import AutocompleteSettings
from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.indexes.generations import Generation, Generations, names
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call

DESCRIBE = scripts.load(__package__, "describe")


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
    start = index.key("")

    def keys(generation: Generation, _parameters: IndexParameters) -> dict[str, int]:
        return {f"{start}{part}:{generation.id}": 0 for part in ("terms", "entries", "scopes")}

    return Generations(index, IndexParameters(unique_ids), keys)


def read_indexes(using: str, start: int, count: int) -> Flow[tuple[int, list[IndexInfo]]]:
    """Return the number of indexes, and some of them by name. Two round trips; one more if a generation is new."""
    listed = names("autocomplete")
    total, members = yield Batch([Call("ZCARD", listed), Call("ZRANGE", listed, start, start + count - 1)])
    found = yield from gather([describe(_Stored(name.decode(), using=using)) for name in members], combine=True)
    return int(total), [info for info in found if info]


def list_indexes(using: str, *, start: int = 0, count: int = 100) -> tuple[int, list[IndexInfo]]:
    """See read_indexes()."""
    result: tuple[int, list[IndexInfo]] = _Stored("indexes", using=using).run_flow(read_indexes(using, start, count))
    return result


def find_info(name: str, using: str) -> IndexInfo | None:
    """Return one index; None if there is none with this name. One or two round trips."""
    stored = _Stored(name, using=using)
    return cast("IndexInfo | None", stored.run_flow(describe(stored)))


def describe(index: Primitive) -> Flow[IndexInfo | None]:
    """Return what is stored of an index. One round trip; two if a generation is new to this process."""
    generations = generations_of(index)
    shape, known = generations.shape, None
    while shape != known:
        known = shape
        keys = [key for each in shape.active for key in generations.keys(each, generations.parameters)]
        stored, lease, identity, *sizes = yield DESCRIBE([generations.state, generations.lease, *keys])
        generations.parameters = parameters = IndexParameters.parse((stored[0] or b"").decode())
        shape = generations.learn(*stored[:2])
    if not shape.active:
        return None
    complete = stored[2] == f"{shape.active[0].id} {identity.decode()}".encode()
    entries, scopes, memory = sizes
    return IndexInfo(index.name, entries, scopes, memory, complete, bool(lease), parameters.unique_ids)
