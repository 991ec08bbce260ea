"""An inverted index in Redis: a sorted set for each word ("Redis in Action", chapter 7), in generations."""

import json
from collections import defaultdict
from collections.abc import Sequence
from secrets import token_hex
from typing import Any, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.errors import RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.generations import Generation, Generations
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Argument, Batch, Call
from redis_kit.search.documents import Document, Stored, facet_member, members_of, sort_member
from redis_kit.search.settings import SearchSettings

STORE = scripts.load(__package__, "store")
CLEAN = scripts.load(__package__, "clean")
POSTINGS = 20_000  # in one call: the server does nothing else for some milliseconds
CLEANED = 500  # keys in one call
NEVER = Generation("none")


class WriterLost(RedisKitError):
    """Another process became the writer of this index. Nothing was changed."""


class Declaration(NamedTuple):
    """The fields and the analysis of an index, which are stored with it."""

    text: str

    @classmethod
    def parse(cls, text: str) -> "Declaration":
        """Return the stored one."""
        return cls(text)

    def __str__(self) -> str:
        return self.text

    @property
    def described(self) -> str:
        """Return it for a message."""
        return f"the fields {self.text}"


class SearchStore(Primitive):
    """The documents of one index, and the words that lead to them."""

    component, settings = "search", SearchSettings

    def __init__(self, name: str, declaration: str) -> None:
        super().__init__(name, using=conf.section(SearchSettings).USING)
        self.generations = Generations(self, Declaration(declaration), lambda generation: {})
        self._averages: dict[str, str] = {}

    def member(self, generation: Generation, end: str) -> str:
        """Return the key of a word, a value or a sort in a generation."""
        return f"{self.prefix(generation)}{end}"

    def prefix(self, generation: Generation) -> str:
        """Return the beginning of the keys of a generation."""
        return self.key(f"{generation.id}:")

    def parts(self, generation: Generation) -> list[str]:
        """Return the keys that each generation has: its records, its words, and what it counts."""
        return [self.key(f"{part}:{generation.id}") for part in ("docs", "words", "stats")]

    def learn(self) -> Flow[None]:
        """Read the shape of the generations. One round trip."""
        self.generations.learn(*(yield Call("HMGET", self.generations.state, "parameters", "shape")))

    def write(
        self, documents: Sequence[Document], gone: Sequence[str], writer: str, token: str, rebuild: str = ""
    ) -> Flow[None]:
        """Store documents and delete others, in all generations, or in that of a rebuild only.

        Raises WriterLost if the key ``writer`` has another token. A repeat changes nothing. Two round trips for each
        generation, and one for the first call of a rebuild.
        """
        written: set[str] = set()
        yield from self.learn()
        while True:
            generations = self.generations.shape.generations
            todo = [each for each in generations if each.id not in written and (not rebuild or each.id == rebuild)]
            if rebuild:
                self.generations.require(rebuild)
            if not todo:
                return
            if (yield from self._write_to(todo[0], documents, gone, writer, token, is_new=bool(rebuild))):
                written.add(todo[0].id)

    def _write_to(
        self,
        generation: Generation,
        documents: Sequence[Document],
        gone: Sequence[str],
        writer: str,
        token: str,
        *,
        is_new: bool,
    ) -> Flow[bool]:
        """Write to one generation. Return False if the shape has changed; then it is known."""
        average = yield from self._average(generation, documents)
        waiting: list[tuple[str, Document | None]] = [(document.id, document) for document in documents]
        waiting += [(id, None) for id in gone]
        while waiting:
            size, postings = 0, 0
            while size < len(waiting) and postings < POSTINGS and size < 500:
                document = waiting[size][1]
                postings += len(document.counts) if document else 50
                size += 1
            reason, *details = yield from self._send(generation, waiting[:size], average, writer, token, is_new=is_new)
            if reason == b"lost":
                raise WriterLost(f"Another process writes to {self!r} now.")
            if reason == b"stale":
                self.generations.learn(*details)
                return False
            if reason == b"average":
                average = self._averages[generation.id] = details[0].decode()
            elif reason == b"changed":
                is_new = False
            else:
                waiting = waiting[size:]
        return True

    def _send(
        self,
        generation: Generation,
        batch: Sequence[tuple[str, Document | None]],
        average: str,
        writer: str,
        token: str,
        *,
        is_new: bool,
    ) -> Flow[list[bytes]]:
        docs, words, stats = self.parts(generation)
        ids = [id for id, _document in batch]
        records = [None] * len(ids) if is_new else (yield Call("HMGET", docs, *ids))
        version, mean = token_hex(4), float(average)
        values: dict[str, list[Any]] = defaultdict(list)  # of facets
        gains: dict[str, list[Any]] = defaultdict(list)
        losses: dict[str, list[str]] = defaultdict(list)
        changed: list[tuple[str, str, str]] = []
        length = 0
        for (id, document), record in zip(batch, records, strict=True):
            stored = Stored.parse(record)
            content = document.record if document else ""
            if content == stored.content:
                continue
            changed.append((id, stored.version, version + content if document else ""))
            length -= stored.length
            members: set[str] = set()
            if document:
                length += document.length
                for word, impact in document.impacts(mean).items():
                    gains[word] += (impact, id)
                for name, number in document.sorts.items():
                    gains[sort_member(name)] += (number, id)
                for member in members_of(document.facets):
                    values[member] += (0, id)
                    members.add(member)
            if record is not None:
                kept = {*members, *document.counts, *map(sort_member, document.sorts)} if document else members
                for member in stored.members():
                    if member not in kept:
                        losses[member].append(id)
        if not changed:
            return [b""]
        prefix = self.prefix(generation)
        names = [*values, *gains, *losses]
        args: list[Argument] = [
            str(self.generations.parameters),
            str(self.generations.shape),
            token,
            generation.id,
            average,
            len(prefix.encode()),
            len(values),
            length,
            _json([id for id, _version, _record in changed]),
            _json([version for _id, version, _record in changed]),
            _json([*values.values(), *gains.values()]),
            _json([*losses.values()]),
        ]
        keys = [self.generations.state, writer, self.key("begun"), docs, words, stats, *[prefix + name for name in names]]
        reply: list[bytes] = yield STORE(keys, [*args, *[record for _id, _version, record in changed]])
        return reply

    def _average(self, generation: Generation, documents: Sequence[Document]) -> Flow[str]:
        """Return the length of an average document: that of the generation, else of the one before, else of these."""
        if known := self._averages.get(generation.id):
            return known
        before = self.generations.shape.active[:1] or (NEVER,)
        stats, (docs, _words, former) = self.parts(generation)[2], self.parts(before[0])
        average, length, count = yield Batch(
            [Call("HGET", stats, "average"), Call("HGET", former, "length"), Call("HLEN", docs)]
        )
        if average is None:
            total = int(length) / count if length and count else _mean(documents)
            average = f"{max(1.0, total):.2f}".encode()
        self._averages[generation.id] = average.decode()
        return str(average.decode())

    def clean(self) -> Flow[None]:
        """Delete the keys of generations that ended, 500 at a time. What a killed process left, too."""
        yield from self.learn()
        for member in (yield Call("SMEMBERS", self.key("begun"))):
            generation = Generation(member.decode())
            docs, words, stats = self.parts(generation)
            is_alive = generation.id in {each.id for each in self.generations.shape.generations}
            while not is_alive:
                ends = yield Call("ZRANGE", words, 0, CLEANED - 1)
                keys = [self.generations.state, self.key("begun"), docs, words, stats]
                keys += [self.member(generation, end.decode()) for end in ends]
                is_alive = not (yield CLEAN(keys, [generation.id, *ends]))
                if not ends:
                    break


def _mean(documents: Sequence[Document]) -> float:
    return sum(document.length for document in documents) / len(documents) if documents else 1.0


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
