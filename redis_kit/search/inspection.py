"""The state of an index."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.generations import Shape
from redis_kit.core.steps import Batch, Call
from redis_kit.search.documents import read_record
from redis_kit.search.store import SearchStore

DESCRIBE = scripts.load(__package__, "describe")
QUERIES = 20  # of each kind
SAMPLE = 100  # documents whose words are measured


class IndexInfo(NamedTuple):
    """An index as it is stored. ``memory`` is an estimate in bytes, 0 if it is not known.

    ``waiting`` is the number of changes that are not written yet. An index is ``complete`` from a rebuild until the
    server restarts, or a process fails to tell it of a change. The numbers of searches are those since it was created;
    the latest slow ones begin with their milliseconds.
    """

    name: str
    using: str
    fields: str
    documents: int = 0
    words: int = 0
    memory: int = 0
    rebuilt: datetime | None = None
    complete: bool = False
    rebuilding: bool = False
    waiting: int = 0
    searches: int = 0
    empty: int = 0
    slow: int = 0
    empty_queries: Sequence[tuple[datetime, str]] = ()
    slow_queries: Sequence[tuple[datetime, str]] = ()

    @classmethod
    def parse(cls, store: SearchStore, reply: Sequence[Any]) -> "IndexInfo | None":
        """Return what the script ``describe`` replied; None if there is no index."""
        pairs, lease, identity, waiting, empty, slow = reply
        fields = {field.decode(): value.decode() for field, value in zip(pairs[::2], pairs[1::2], strict=True)}
        shape = Shape.parse(fields.get("shape", ""))
        if not shape.generations:
            return None
        active = shape.active[0].id if shape.active else ""
        documents, words, postings = map(int, fields.get(f"items:{active}:1", "0 0 0").split())
        measured, of_postings = map(int, fields.get("memory", "0 1").split())
        memory = measured * postings // of_postings
        rebuilt = _time(fields[f"since:{active}"]) if active else None
        complete = fields.get("complete") == f"{active} {identity.decode()}"
        counts = [int(fields.get(key, 0)) for key in ("searches", "empty", "slow")]
        sizes = (documents, words, memory, rebuilt, complete, bool(lease), waiting)
        names = (store.name, store.using, fields["parameters"])
        return cls._make([*names, *sizes, *counts, _logged(empty), _logged(slow)])


def clear(name: str, using: str) -> bool:
    """Delete an index, whether a class has it or not, and return whether there was one."""
    store = SearchStore(name, using=using)
    was_there: bool = store.run_flow(store.generations.clear())
    store.run_flow(store.clean())
    return was_there


def describe(store: SearchStore) -> Flow[IndexInfo | None]:
    """Return what is stored of an index. One round trip."""
    keys = [store.key(part) for part in ("state", "lease", "announced", "committed", "empty", "slow")]
    return IndexInfo.parse(store, (yield DESCRIBE(keys, [QUERIES - 1])))


def measure(store: SearchStore) -> Flow[None]:
    """Store an estimate of the memory: that of words in some documents, which stand for all. Three round trips."""
    generation = (yield from store.generations.read()).active[0]
    docs, words, stats = store.parts(generation)
    sample, postings = yield Batch([Call("HRANDFIELD", docs, SAMPLE, "WITHVALUES"), Call("HGET", stats, "postings")])
    ends = [end for record in sample[1::2] for end in read_record(record)[3]]
    keys = [store.prefix(generation) + end for end in random.sample(ends, min(len(ends), 5 * SAMPLE))]
    calls = [Call("MEMORY", "USAGE", key, "SAMPLES", SAMPLE) for key in (docs, words)]
    for key in keys:
        calls += [Call("MEMORY", "USAGE", key), Call("ZCARD", key)]
    of_docs, of_words, *sizes = yield Batch(calls)
    shares = [size / count for size, count in zip(sizes[::2], sizes[1::2], strict=True) if size and count]
    total = (of_docs or 0) + (of_words or 0) + int(postings or 0) * sum(shares) / max(1, len(shares))
    yield Call("HSET", store.generations.state, "memory", f"{total:.0f} {postings.decode() if postings else 1}")


def _logged(pairs: Sequence[bytes]) -> list[tuple[datetime, str]]:
    return [(_time(time), entry.decode()) for entry, time in zip(pairs[::2], pairs[1::2], strict=True)]


def _time(milliseconds: str | bytes) -> datetime:
    return datetime.fromtimestamp(float(milliseconds) / 1000, UTC)
