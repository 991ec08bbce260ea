"""Queries: what is asked for, the plan that the script carries out, and its answer."""

import json
from collections import deque
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from time import monotonic
from typing import Any, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.errors import RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.generations import Shape
from redis_kit.core.logs.masking import without_secrets
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument, Batch, Call
from redis_kit.core.text import clean
from redis_kit.search.documents import facet_end, sort_end
from redis_kit.search.query import Query, edits
from redis_kit.search.store import SearchStore

SEARCH = scripts.load(__package__, "search")
MAX_HITS = 1000  # documents of a result that are stored, and can be paged through
MOST_COUNTED = 200  # values of a facet that are counted: the most frequent ones
MOST_VALUES = 1000  # that they are chosen from
MOST_SPELLINGS = 20  # of a word
SPELLING = 0.5  # what another spelling counts
SLOW = 0.05  # seconds
LONGEST_ENTRY = 80  # characters of a query in the lists of slow and empty ones
FIRST = 10  # keys before the sets
_values: dict[tuple[str, ...], tuple[str, int, list[str]]] = {}  # by index and facets: generation, number and ends
_slow: dict[str, deque[tuple[str, float]]] = {}  # by index: what the next search of this process reports
conf.on_change(_values.clear)


class IndexMissing(RedisKitError):
    """The index was never built, or keys of it are gone. ``rk_search rebuild`` makes it whole."""


class Request(NamedTuple):
    """A query with its options, checked. ``order`` has a sort and a sign, or 0 for that of relevance."""

    text: str
    query: Query
    filters: Mapping[str, Sequence[str]]
    order: tuple[str, int]
    boosts: Mapping[str, float]
    facets: Sequence[str]
    fuzzy: bool
    limit: int
    offset: int

    @property
    def shown(self) -> str:
        """Return the text for people: cut, and without secrets and control characters."""
        return clean(without_secrets(self.text[: 4 * LONGEST_ENTRY]))[:LONGEST_ENTRY]


class Answer(NamedTuple):
    """The answer of an index: ids with scores, counts of values, and the words that documents were found by.

    ``header`` is the key that has the factors of all parts for a minute, ``parts`` has their keys by their names.
    """

    scores: Mapping[str, float]
    total: int
    facets: Mapping[str, Mapping[str, int]]
    words: frozenset[str]
    header: str
    parts: Mapping[str, str]


class Plan:
    """The sets of a query, and what is done with them. Places are those of the script's keys."""

    def __init__(self, store: SearchStore, shape: Shape, request: Request, spellings: Mapping[str, list[str]]) -> None:
        self.store, self.shape, self.request, self.spellings = store, shape, request, spellings
        self.prefix = store.prefix(shape.active[0])
        self.sets: list[str] = []
        self.parts: dict[str, str] = {}  # of a score: the key of each, by its name
        self.temporary: list[int] = []
        query, (sort, sign) = request.query, request.order
        # No document has the value "".
        filters = [[facet_end(name, value) for value in values or [""]] for name, values in request.filters.items()]
        self.steps: dict[str, Any] = {
            "required": [*map(self._word, query.required), *map(self._clause, filters)],
            "optional": [*map(self._word, query.optional)],
            "excluded": [self._clause([word]) for word in query.excluded],
            "phrases": [f" {' '.join(phrase)} " for phrase in query.phrases],
            "without": [f" {' '.join(phrase)} " for phrase in query.excluded_phrases],
            "boosts": [[self._part(sort_end(name), name), share] for name, share in request.boosts.items()],
            "order": [self.place(sort_end(sort)), sign] if sign else [],
            "facets": [],
            "temporary": self.temporary,
        }

    def call(self) -> ScriptCall:
        """Return the call of the script."""
        store, request = self.store, self.request
        packed = json.dumps(self.steps, ensure_ascii=False, separators=(",", ":"))
        digest = blake2b("\0".join((packed, *self.sets)).encode(), digest_size=12).hexdigest()
        self.header = store.key(f"header:{digest}")
        keys = [store.generations.state, *store.parts(self.shape.active[0]), store.key(f"hits:{digest}"), self.header]
        keys += [store.key(part) for part in ("empty", "slow", "found", "extra")]
        args: list[Argument] = [str(store.generations.parameters), str(self.shape), packed, request.offset]
        slow = [(text, round((monotonic() - time) * 1000)) for text, time in _slow.pop(store.name, ())]
        args += [
            request.limit,
            request.shown if request.query.positive else "",
            json.dumps(slow),
            len(self.prefix.encode()),
        ]
        return SEARCH([*keys, *self.sets], args)

    def _word(self, word: str) -> dict[str, Any]:
        return self._clause([word, *self.spellings.get(word, ())], scored=True)

    def _clause(self, ends: Sequence[str], *, scored: bool = False) -> dict[str, Any]:
        places = [self._part(end, end) if scored else self.place(end) for end in ends]
        if len(ends) > 1:
            self.temporary.append(self.place(f">{len(self.sets)}"))
        weights = [1, *[SPELLING] * (len(ends) - 1)] if scored else [0] * len(ends)
        return {"sets": places, "weights": weights, "scored": scored, "target": FIRST + len(self.sets)}

    def _part(self, end: str, name: str) -> int:
        self.parts[name] = self.prefix + end
        return self.place(end)

    def place(self, end: str) -> int:
        """Add a set, and return its place."""
        self.sets.append(self.prefix + end)
        return FIRST + len(self.sets)


def search(store: SearchStore, request: Request) -> Flow[Answer]:
    """Return the answer of an index. Raises IndexMissing.

    One round trip if this process knows the shape of the index and the values of the facets that are counted.
    """
    began, shape, reason = monotonic(), store.generations.shape, "stale"
    while reason:
        if not shape.active:
            shape = yield from store.generations.read()
            if not shape.active:
                raise IndexMissing(f"{store!r} was never built. Run: manage.py rk_search rebuild {store.name}")
        plan = Plan(store, shape, request, (yield from _spell(store, shape, request)))
        ends: list[str] = []
        if request.facets:
            place = (store.name, *request.facets)
            if reason == "values" or _values.get(place, ("",))[0] != plan.prefix:
                _values[place] = plan.prefix, *(yield from _learn_values(store, shape, request.facets))
            _, number, ends = _values[place]
            plan.steps |= {"values": number, "facets": list(map(plan.place, ends))}
        answer, *details = yield plan.call()
        reason = answer.decode()
        if reason == "stale":
            shape = store.generations.learn(*details)
        elif reason == "lost":
            raise IndexMissing(f"Keys of {store!r} are gone. Run: manage.py rk_search rebuild {store.name}")
    if (seconds := monotonic() - began) >= SLOW:
        _slow.setdefault(store.name, deque(maxlen=100)).append((f"{seconds * 1000:.0f} {request.shown}", monotonic()))
    page, total, sizes, shift = details
    facets: dict[str, dict[str, int]] = {name: {} for name in request.facets}
    for size, end in sorted(zip(map(int, sizes.split()), ends, strict=True), key=lambda pair: (-pair[0], pair[1])):
        _, name, value = end.split("=", 2)
        facets[name] |= {value: size} if size else {}
    scores = {id.decode(): float(score) + float(shift) for id, score in zip(page[::2], page[1::2], strict=True)}
    words = frozenset(request.query.positive).union(*plan.spellings.values())
    return Answer(scores, int(total), facets, words, plan.header, plan.parts)


def _spell(store: SearchStore, shape: Shape, request: Request) -> Flow[dict[str, list[str]]]:
    """Return for each word the stored words within one edit. One round trip, none if the request is not fuzzy."""
    edited = [(word, list(dict.fromkeys(edits(word)))) for word in request.query.positive if request.fuzzy]
    edited = [(word, others) for word, others in edited if others]
    calls = [Call("ZMSCORE", store.parts(shape.active[0])[1], *others) for _word, others in edited]
    spellings = dict[str, list[str]]()
    for (word, others), scores in zip(edited, (yield Batch(calls)) if calls else [], strict=True):
        stored = [other for other, score in zip(others, scores, strict=True) if score is not None and other != word]
        spellings[word] = stored[:MOST_SPELLINGS]
    return spellings


def _learn_values(store: SearchStore, shape: Shape, names: Sequence[str]) -> Flow[tuple[int, list[str]]]:
    """Return the number of values, and the ends of the most frequent ones of facets. Two round trips."""
    _docs, words, stats = store.parts(shape.active[0])
    prefix = store.prefix(shape.active[0])
    calls = [Call("ZRANGEBYLEX", words, f"[={name}=", f"(={name}>", "LIMIT", 0, MOST_VALUES) for name in names]
    number, *listed = yield Batch([Call("HGET", stats, "values"), *calls])
    ends = [[end.decode() for end in values] for values in listed]
    flat = [end for values in ends for end in values]
    sizes = dict(zip(flat, (yield Batch([Call("ZCARD", prefix + end) for end in flat])) if flat else [], strict=True))
    frequent = [end for values in ends for end in sorted(values, key=lambda end: -sizes[end])[:MOST_COUNTED]]
    return int(number or 0), frequent
