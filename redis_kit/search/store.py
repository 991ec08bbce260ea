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
from redis_kit.search.documents import Document, Stored
from redis_kit.search.settings import SearchSettings

STORE = scripts.load(__package__, "store")
POSTINGS = 5000  # in one call: the server does nothing else for some milliseconds
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

        Raises WriterLost if the key ``writer`` has another token. A repeat changes nothing. Two round trips for each
        generation and 5,000 words.
        """
        changes: list[Change] = [*documents.items(), *((id, None) for id in gone)]
        written: set[str] = set()
        shape = self.generations.shape
        if not shape.generations:
            shape = yield from self.generations.read()
        while True:
            if rebuild and not shape.has_shadow(rebuild):
                shape = yield from self.generations.read()
                self.generations.require(shape, rebuild)
            left = [each for each in shape.generations if each.id not in written and rebuild in ("", each.id)]
            if not left:
                return
            newer = yield from self._write_to(left[0], shape, changes, writer, token)
            if newer is None:
                written.add(left[0].id)
            else:
                shape = newer

    def _write_to(
        self, generation: Generation, shape: Shape, changes: Sequence[Change], writer: str, token: str
    ) -> Flow[Shape | None]:
        """Write to one generation. Return the stored shape if it is another one."""
        prefix = self.prefix(generation)
        for batch in _batches(changes):
            reason = "changed"
            while reason == "changed":
                replacement = yield from self._prepare(generation, shape, batch)
                if not replacement.records:
                    break
                args: list[Argument] = [str(self.generations.parameters), str(shape), token, generation.id]
                keys = [self.generations.state, writer, self.key("begun"), *self.parts(generation)]
                keys += [prefix + end for end in replacement.ends]
                answer, *stored = yield STORE(keys, [*args, len(prefix.encode()), *replacement.arguments()])
                reason = answer.decode()
                if reason == "lost":
                    raise WriterLost(f"Another process writes to {self!r}.")
                if reason == "stale":
                    return self.generations.learn(*stored)
        return None

    def _prepare(self, generation: Generation, shape: Shape, batch: Sequence[Change]) -> Flow["Replacement"]:
        """Read what is stored for documents, and return how it is replaced. One round trip."""
        docs, _words, stats = self.parts(generation)
        former_docs, _words, former = self.parts((*shape.active, generation)[0])
        average, length, count, records = yield Batch(
            [
                Call("HGET", stats, "average"),
                Call("HGET", former, "length"),
                Call("HLEN", former_docs),
                Call("HMGET", docs, *(id for id, _document in batch)),
            ]
        )
        if average is None:  # that of the generation before, else that of these documents
            lengths = [document.length for _id, document in batch if document] or [1]
            mean = int(length) / count if length and count else sum(lengths) / len(lengths)
            average = b"%.2f" % max(1.0, mean)
        replacement = Replacement(average.decode())
        for (id, document), record in zip(batch, records, strict=True):
            replacement.add(id, Stored.parse(record), document)
        return replacement

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
    """What a batch of documents changes in a generation: for each of its keys the documents that come and go."""

    def __init__(self, average: str) -> None:
        self.average, self.version = average, token_hex(4)
        self.records: dict[str, tuple[str, str]] = {}  # by id: the version that is replaced, and the new record
        self._values: dict[str, list[Any]] = defaultdict(list)
        self._gains: dict[str, list[Any]] = defaultdict(list)
        self._losses: dict[str, list[str]] = defaultdict(list)
        self._length = 0

    def add(self, id: str, stored: Stored, document: Document | None) -> None:
        """Add a document, or the end of one."""
        content = document.record if document else ""
        if content == stored.content:
            return
        self.records[id] = stored.version, self.version + content if document else ""
        self._length -= stored.length
        kept: set[str] = set()
        if document:
            self._length += document.length
            impacts = document.impacts(float(self.average))
            for end, score in (*impacts.items(), *document.sorts.items()):
                self._gains[end] += (score, id)
            for end in document.values:
                self._values[end] += (0, id)
            kept = {*impacts, *document.sorts, *document.values}
        for end in stored.ends - kept:
            self._losses[end].append(id)

    @property
    def ends(self) -> list[str]:
        """Return the ends of the names of all keys, in the order of the arguments."""
        return [*self._values, *self._gains, *self._losses]

    def arguments(self) -> list[str | int]:
        """Return the last arguments of the script ``store``."""
        versions = [version for version, _record in self.records.values()]
        gains = [*self._values.values(), *self._gains.values()]
        lists = (list(self.records), versions, gains, [*self._losses.values()])
        packed = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in lists]
        records = [record for _version, record in self.records.values()]
        return [self.average, len(self._values), self._length, *packed, *records]


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
