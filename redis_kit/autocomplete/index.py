"""Autocomplete: entries whose words begin with those that a user types, in the order of their weights."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast
from uuid import UUID

from redis_kit.autocomplete.inspection import SCOPED, SEARCH, UNIQUE, IndexInfo, describe, generations_of, requested
from redis_kit.autocomplete.settings import AutocompleteSettings
from redis_kit.autocomplete.words import checked_text, query_words, spans, spellings
from redis_kit.core import conf, scripts
from redis_kit.core.errors import InvalidValue, RebuildLost
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.indexes.generations import LEASE_MS
from redis_kit.core.primitive import NOTHING, Primitive
from redis_kit.core.steps import Argument
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import is_number, whole_number
from redis_kit.core.values.sequences import batched, several

STORE = scripts.load(__package__, "store")
BATCH = 50  # entries in one call: the server does nothing else for some milliseconds
LIMIT = (1, 100)
BLOCKS, CALLS = 128, 10  # blocks, each of some nine terms, that one call of a search reads, and calls
MOST_WEIGHT, LONGEST_ID, LONGEST_RECORD = 10**12, 128, 7000
_decode = json.JSONDecoder().raw_decode
_new: Callable[[type["Hit"], tuple[Any, ...]], "Hit"] = tuple.__new__  # faster than Hit()
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")

Identity = str | int | UUID
Progress = Callable[[int], object]
Fields = tuple[Argument, ...]  # of an entry, as the script takes them


class Entry(NamedTuple):
    """An entry to be stored. ``scope`` is only for those of an index without one."""

    id: Identity
    text: str
    weight: float = 0
    payload: Any = None
    scope: Identity | None = None


class Hit(NamedTuple):
    """An entry that was found, by these words of the query."""

    id: str
    text: str
    payload: Any
    words: tuple[str, ...] = ()

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return the start and end of each part of the text that matches; () if a further spelling of it does."""
        return spans(self.text, self.words) or ()


class Autocomplete(Primitive):
    """Short texts that are found by the beginnings of their words, in any script.

    Case, accents and width don't count. The words of a query may have any order, and each begins a word of its own.
    The heaviest entries come first: by the powers of two of their weights, then alphabetically from the word on that
    matches. A search finds entries of its ``scope`` only. An id may be in several scopes, or, with ``unique_ids``, in
    one, which another ``add()`` changes. Ids and scopes are str, int and UUID; 1 and "1" are equal. Texts have 1 to
    1,000 characters, and are found by their first 16 words and 128 characters.
    """

    component, settings = "autocomplete", AutocompleteSettings

    def __init__(
        self,
        name: str,
        scope: Identity | None = None,
        using: str | None = None,
        *,
        unique_ids: bool = False,
        **unknown: Any,
    ) -> None:
        super().__init__(name, using=using or conf.section(AutocompleteSettings).USING, unknown=unknown or NOTHING)
        self.scope = _identity("scope", scope)
        self.generations = generations_of(self, UNIQUE if unique_ids else SCOPED)

    @operation
    def add(self, id: Identity, text: str, weight: float = 0, payload: Any = None) -> Flow[bool]:
        """Store an entry, or replace it, and return whether it was new. One round trip; a repeat is harmless.

        ``weight`` is 0 to 10^12, ``payload`` at most 7,000 characters of JSON with the text. Its uses stay.
        """
        return (yield from self.store([self.fields(Entry(id, text, weight, payload))])) == 1

    @operation
    def add_many(self, entries: Iterable[Entry | Sequence[Any]]) -> Flow[int]:
        """Store entries, or tuples that begin as one does, and return how many were new. One round trip for each 50."""
        return self.store(map(self.fields, several(entries)))

    @operation
    def remove(self, id: Identity) -> Flow[bool]:
        """Remove an entry, and return whether it was there. One round trip; a repeat is harmless."""
        return (yield from self.store([self.removal(id)])) == 1

    @operation
    def remove_many(self, ids: Iterable[Identity]) -> Flow[int]:
        """Remove entries, and return how many were there. One round trip for each 50."""
        return self.store(map(self.removal, several(ids)))

    @operation
    def use(self, id: Identity) -> Flow[bool]:
        """Count a use of an entry, and return whether it is there. One round trip; a repeat counts twice."""
        return (yield from self.store([(*self.removal(id)[:2], "use", "", "")])) == 1

    @operation(if_open=[])
    def search(self, text: str, limit: int = 10) -> Flow[list[Hit]]:
        """Return at most ``limit`` entries, 1 to 100, in which words begin with those of the text.

        A text without words finds the heaviest. Its first 64 characters count. One round trip; up to 10 if several
        words are rarely in one entry. Then the search ends after some 10,000 terms of the longest one.
        """
        return cast("Flow[list[Hit]]", self.look_up(text, limit))

    @operation
    def info(self) -> Flow[IndexInfo | None]:
        """Return the entries in all scopes, and the state; None if nothing was added. One or two round trips."""
        return describe(self)

    @operation
    def clear(self) -> Flow[bool]:
        """Remove the entries of this scope, or without one those of all, and return whether there were any."""
        if not self.scope:
            return (yield from self.generations.clear())
        count = 0
        while hits := (yield from self.look_up("", LIMIT[1])):
            count += yield from self.store([self.removal(hit.id) for hit in hits])
        return count > 0

    @operation
    def rebuild(self, entries: Iterable[Entry | Sequence[Any]], *, progress: Progress | None = None) -> Flow[int]:
        """Replace the entries of all scopes in one step, and return how many there were. Writes during it count, too.

        Read the entries lazily: a list that was made before the call lacks what was added since. Uses stay.
        ``progress`` is called with the number of entries after each 50. Raises RebuildRunning, and RebuildLost if the
        server restarts during it or a minute passes between two calls.
        """
        if self.scope:
            raise InvalidValue("A rebuild replaces the entries of all scopes. Call it without a scope.")

        def write(batch: list[Any], token: str) -> Flow[int]:
            return self.store(map(self.fields, batch), rebuild=token)

        return self.generations.rebuild(entries, write, progress=progress)

    def store(self, items: Iterable[Fields], writer: str = "", rebuild: str = "") -> Flow[int]:
        """Change entries, and return how many are new, used or gone. Raises RebuildLost if another process writes."""
        generations, changes = self.generations, 0
        shape, half_life = generations.shape, round(conf.section(AutocompleteSettings).HALF_LIFE * 1000)
        for batch in batched(items, BATCH):
            reason = b"untried"
            while reason:
                keys = [generations.state, generations.lease, self.key("writer"), *generations.keys_of(shape)]
                args: list[Argument] = [str(generations.parameters), str(shape), writer, rebuild, LEASE_MS, half_life]
                changed, reason, *details = yield STORE(keys, [*args, *chain.from_iterable(batch)])
                changes += changed
                if reason == b"lost":
                    raise RebuildLost(f"Another process writes to {self!r} now.")
                if reason == b"dead":
                    shape = yield from generations.forget(shape)
                elif reason:
                    shape = generations.learn(*details)
                    if rebuild:
                        generations.require(shape, rebuild)
                    elif not shape.active:
                        shape = yield from generations.rotate(shape)
        return changes

    def look_up(self, text: str, limit: int, *, guard: bool = False) -> Flow[list[Hit] | None]:
        """Return the hits of a search; with ``guard`` None if the index is not complete."""
        whole_number("limit", limit, LIMIT)
        generations, hits = self.generations, dict[str, Hit]()
        shape, parameters, words = generations.shape, generations.parameters, tuple(query_words(text))
        level, block, calls = b"0", b"", CALLS
        while calls:
            keys, known = requested(generations.state, shape)
            args: list[Argument] = [str(parameters), known, "1" if guard else "0", self.scope, self._prefix(self.scope)]
            args += [limit, BLOCKS, level, block, *(words or ("",))]
            reply = yield SEARCH(keys, args)
            if not isinstance(reply, bytes):
                reason, *details = reply
                if reason != b"stale":
                    return None
                shape = generations.learn(*details)
                continue
            level, block, records = reply.split(b"\3", 2)
            if records:
                hits |= {hit[0]: hit for hit in _hits(records.decode("utf-8", "surrogatepass"), words)}
            calls = calls - 1 if block and len(hits) < limit else 0
        return list(hits.values())[:limit]

    def fields(self, values: Entry | Sequence[Any]) -> Fields:
        """Return an entry as the script takes it. Raises InvalidValue."""
        is_entry = isinstance(values, Sequence) and not isinstance(values, str)
        if not is_entry or not 2 <= len(values) <= len(Entry._fields):
            raise InvalidValue(f"An entry has an id, a text, a weight, a payload and a scope, not {shortened(values)}.")
        id, text, weight, payload, of = Entry(*values)
        if not is_number(weight) or not 0 <= weight <= MOST_WEIGHT:
            raise InvalidValue(f"weight must be a number from 0 to 10^12, not {shortened(weight)}.")
        scope = self.scope if of is None else _identity("scope", of)
        if self.scope not in ("", scope):
            raise InvalidValue(f"This is the scope {self.scope}. Entries of others need Autocomplete({self.name!r}).")
        checked_text(text)
        content = _packed(text, payload)
        return scope, self._prefix(scope) + _identity("id", id), f"{weight:.17g}", "\2".join(spellings(text)), content

    def removal(self, id: Identity) -> Fields:
        """Return the removal of an entry as the script takes it."""
        return self.scope, self._prefix(self.scope) + _identity("id", id), "", "", ""

    def _prefix(self, scope: str) -> str:
        return f"{scope}\2" if scope and self.generations.parameters == SCOPED else ""

    aadd = twin(add)
    aadd_many = twin(add_many)
    aremove = twin(remove)
    aremove_many = twin(remove_many)
    ause = twin(use)
    asearch = twin(search)
    ainfo = twin(info)
    aclear = twin(clear)
    arebuild = twin(rebuild)


def _hits(reply: str, words: tuple[str, ...]) -> Iterator[Hit]:
    parts = "\3".join(reply.split("\1")[4::4]).split("\3")  # of each record its content, its id, and the next weight
    contents, _end = _decode(f"[{','.join(parts[::3])}]")
    for id, content in zip(parts[1::3], contents, strict=True):
        yield _new(Hit, (id, content, None, words) if type(content) is str else (id, *content, words))


def _packed(text: str, payload: Any) -> bytes:
    content = text if payload is None else [text, payload]
    try:
        packed = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"The payload of an entry can't be written as JSON: {error}.") from error
    if len(packed) > LONGEST_RECORD:
        raise InvalidValue(f"Text and payload have {len(packed):,} characters of JSON; {LONGEST_RECORD:,} are allowed.")
    return packed.encode("utf-8", "surrogatepass")


def _identity(what: str, value: Any) -> str:
    if value is None and what == "scope":
        return ""
    text = str(value) if isinstance(value, str | int | UUID) and not isinstance(value, bool) else ""
    if not text or _CONTROL.search(text) or len(text.encode()) > LONGEST_ID:
        allowed = f"an int, a UUID, or text of 1 to {LONGEST_ID} bytes without control characters"
        raise InvalidValue(f"The {what} of an entry must be {allowed}, not {shortened(value)}.")
    return text
