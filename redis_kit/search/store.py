"""An inverted index in Redis: a sorted set for each word ("Redis in Action", chapter 7), in generations."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from secrets import token_hex
from typing import Any, Self

from redis_kit.core import conf, scripts
from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.generations import Generation, Generations, Shape
from redis_kit.core.indexes.row_index import WriterLost
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Argument, Batch, Call
from redis_kit.search.documents import Document, read_record
from redis_kit.search.settings import SearchSettings

STORE = scripts.load(__package__, "store")
POSTINGS = 5000  # in one call: the server does nothing else for 30 ms, and on a busy machine for much longer
CLEANED = 500  # keys in one call
Change = tuple[str, Document | None]


class Declaration(str):
    """The fields and the analysis of an index, as they are stored with it."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the stored ones."""
        return cls(text)

    @property
    def described(self) -> str:
        """Return them for a message."""
        return f"the fields {self}"


class SearchStore(Primitive):
    """The documents of one index, and the words that lead to them."""

    component, settings = "search", SearchSettings
    answered = (RedisFailure,)  # whatever Redis refuses, a page with results is to be shown

    def __init__(self, name: str, declaration: str = "", *, using: str | None = None) -> None:
        super().__init__(name, using=using or conf.section(SearchSettings).USING)
        # The keys of a generation are too many to be deleted at its end: clean() does that.
        self.generations = Generations(self, Declaration(declaration), lambda generation, parameters: {})

    def prefix(self, generation: Generation) -> str:
        """Return the beginning of the keys of words, values and sorts."""
        return self.key(f"{generation.id}:")

    def parts(self, generation: Generation) -> list[str]:
        """Return the keys that each generation has: its records, the ends of its other keys, and what it counts."""
        return [self.key(f"{part}:{generation.id}") for part in ("docs", "words", "stats")]

    def write(
        self, documents: Mapping[str, Document], gone: Sequence[str], writer: str, token: str, rebuild: str = ""
    ) -> Flow[None]:
        """Store documents and delete others, in all generations, or in that of a rebuild only.

        Raises WriterLost if the key ``writer`` has another token. A repeat changes nothing. One round trip, and two for
        each generation and 5,000 words.
        """
        changes: list[Change] = [*documents.items(), *((id, None) for id in gone)]
        written: set[str] = set()
        shape = yield from self.generations.read()  # a rebuild that begins later reads all that these rows say
        while True:
            if rebuild:
                self.generations.require(shape, rebuild)
            left = [each for each in shape.generations if each.id not in written and rebuild in ("", each.id)]
            if not left:
                return
            stored = shape
            for batch in _batches(changes):
                if stored == shape:
                    stored = yield from self._write_to(left[0], shape, batch, writer, token)
            if stored == shape:
                written.add(left[0].id)
            shape = stored

    def _write_to(
        self, generation: Generation, shape: Shape, batch: Sequence[Change], writer: str, token: str
    ) -> Flow[Shape]:
        """Write to one generation, and return the stored shape. If it is another one, nothing was changed."""
        docs, words, stats = self.parts(generation)
        former_docs, _words, former = self.parts((*shape.active, generation)[0])
        ids = [id for id, _document in batch]
        calls = [Call("HGET", stats, "average"), Call("HGET", former, "length"), Call("HLEN", former_docs)]
        average, length, count, records = yield Batch([*calls, Call("HMGET", docs, *ids)])
        if average is None:  # that of the generation before, else that of these documents
            lengths = [document.length for _id, document in batch if document] or [1]
            mean = int(length) / count if length and count else sum(lengths) / len(lengths)
            average = b"%.2f" % max(1.0, mean)
        replacement = Replacement(float(average))
        for (id, document), record in zip(batch, records, strict=True):
            replacement.add(id, record, document)
        if not replacement.ids:
            return shape
        prefix = self.prefix(generation)
        args: list[Argument] = [str(self.generations.parameters), str(shape), token, generation.id]
        keys = [self.generations.state, writer, self.key("begun"), docs, words, stats, *replacement.keys(prefix)]
        answer, *stored = yield STORE(keys, [*args, len(prefix.encode()), average, *replacement.arguments()])
        if answer == b"lost":
            raise WriterLost(f"Another process writes to {self!r}.")
        if answer == b"changed":
            return (yield from self._write_to(generation, shape, batch, writer, token))
        return self.generations.learn(*stored) if answer else shape

    def clean(self) -> Flow[None]:
        """Delete the keys of generations that ended, 500 at a time; those that a killed process left, too."""
        begun = yield Call("SMEMBERS", self.key("begun"))
        shape = yield from self.generations.read()  # later: what is in neither has ended, and no script writes to it
        for id in {member.decode() for member in begun} - {each.id for each in shape.generations}:
            generation = Generation(id)
            parts = self.parts(generation)
            while ends := (yield Call("ZRANGE", parts[1], 0, CLEANED - 1)):
                yield Call("UNLINK", *(self.prefix(generation) + end.decode() for end in ends))
                yield Call("ZREM", parts[1], *ends)
            yield Call("UNLINK", *parts)
            yield Call("SREM", self.key("begun"), id)


class Replacement:
    """The changes of a batch of documents in a generation: for each of its keys the documents that come and go."""

    def __init__(self, average: float) -> None:
        self.average, self.new_version, self.length = average, token_hex(4), 0
        self.ids: list[str] = []
        self.versions: list[str] = []  # that are replaced
        self.records: list[str] = []
        self.values, self.gains, self.losses = (defaultdict[str, list[Any]](list) for _ in range(3))

    def add(self, id: str, record: bytes | None, document: Document | None) -> None:
        """Add a document, or the end of one, in place of what its record says."""
        version, stored, length, ends = read_record(record)
        content = document.record if document else ""
        if content == stored:
            return
        self.ids.append(id)
        self.versions.append(version)
        self.records.append(self.new_version + content if document else "")
        self.length += (document.length if document else 0) - length
        scores = {**document.impacts(self.average), **document.sorts} if document else {}
        values = document.values if document else ()
        for end, score in scores.items():
            self.gains[end] += (score, id)
        for end in values:
            self.values[end] += (0, id)
        for end in ends - scores.keys() - set(values):
            self.losses[end].append(id)

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that change, in the order of the arguments."""
        return [prefix + end for end in (*self.values, *self.gains, *self.losses)]

    def arguments(self) -> list[Argument]:
        """Return the last arguments of the script ``store``."""
        gains = [*self.values.values(), *self.gains.values()]
        lists = (self.ids, self.versions, gains, [*self.losses.values()])
        packed = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in lists]
        return [len(self.values), self.length, *packed, *self.records]


def _batches(changes: Sequence[Change]) -> Iterator[list[Change]]:
    batch: list[Change] = []
    postings = 0
    for change in changes:
        size = len(change[1].counts) if change[1] else 50
        if batch and postings + size > POSTINGS:
            yield batch
            batch, postings = [], 0
        batch.append(change)
        postings += size
    if batch:
        yield batch
