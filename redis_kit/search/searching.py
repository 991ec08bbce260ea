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
from redis_kit.core.indexes.generations import Generation, Shape
from redis_kit.core.logs.masking import without_secrets
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
_values: dict[str, tuple[int, dict[str, list[str]]]] = {}  # by the prefix of a generation: number and values of facets
_slow: dict[str, deque[tuple[str, float]]] = {}  # by index: what the next search of this process reports
conf.on_change(_values.clear)


class IndexMissing(RedisKitError):
    """The index was never built, or keys of it are gone. ``rk_search rebuild`` makes it whole."""


class Request(NamedTuple):
    """A query with its options, checked. ``order`` has the name of a sort and a sign, ``boosts`` shares by sort."""

    text: str
    query: Query
    filters: Mapping[str, Sequence[str]]
    order: tuple[str, int] | None
    boosts: Mapping[str, float]
    facets: Sequence[str]
    fuzzy: bool
    limit: int
    offset: int


class Answer(NamedTuple):
    """What the index found: ids with scores, counts of values, the words that led there, and where parts of scores are.

    ``header`` is the key that has the factors of all parts for a minute, ``parts`` their names, places and keys.
    """

    scores: Mapping[str, float]
    total: int
    facets: Mapping[str, Mapping[str, int]]
    words: frozenset[str]
    header: str
    parts: Sequence[tuple[str, int, str]]


class Plan:
    """The sets of a query, and what is done with them. Places are those of the script's keys, from 1."""

    def __init__(self, request: Request, prefix: str, spellings: Mapping[str, Sequence[str]]) -> None:
        self.prefix, self.header = prefix, ""
        self.sets: list[str] = []
        self.parts: list[tuple[str, int]] = []
        self.words: set[str] = set()
        self._temporary: list[int] = []
        self._spellings = spellings
        query = request.query
        filters = [
            self._clause([(facet_end(name, value), 1.0) for value in values], scored=False)
            for name, values in request.filters.items()
        ]
        self.steps: dict[str, Any] = {
            "required": [*map(self._word, query.required), *filters],
            "optional": [*map(self._word, query.optional)],
            "excluded": [self._clause([(word, 1.0)], scored=False) for word in query.excluded],
            "phrases": [f" {' '.join(phrase)} " for phrase in query.phrases],
            "without": [f" {' '.join(phrase)} " for phrase in query.excluded_phrases],
            "boosts": [[self._part(sort_end(name), name), share] for name, share in request.boosts.items()],
            "order": [self._place(sort_end(request.order[0])), request.order[1]] if request.order else [],
            "facets": [],
            "temporary": self._temporary,
        }

    def count(self, number: int, values: Mapping[str, Sequence[str]]) -> None:
        """Have the values of facets counted."""
        self.steps["values"] = number
        self.steps["facets"] = [
            [self._place(facet_end(name, value)) for value in listed] for name, listed in values.items()
        ]

    def _word(self, word: str) -> dict[str, Any]:
        spellings = [other for other in self._spellings.get(word, ()) if other != word]
        self.words.update((word, *spellings))
        return self._clause([(word, 1.0), *((other, SPELLING) for other in spellings)], scored=True)

    def _clause(self, sets: Sequence[tuple[str, float]], *, scored: bool) -> dict[str, Any]:
        places = [self._part(end, end) if scored else self._place(end) for end, _weight in sets]
        clause = {"sets": places, "weights": [weight for _end, weight in sets], "scored": scored}
        if len(sets) > 1:
            clause["target"] = self._place(f">{len(self.sets)}")
            self._temporary.append(self._place_of_last())
        return clause

    def _part(self, end: str, name: str) -> int:
        place = self._place(end)
        self.parts.append((name, place))
        return place

    def _place(self, end: str) -> int:
        self.sets.append(self.prefix + end)
        return self._place_of_last()

    def _place_of_last(self) -> int:
        return FIRST + len(self.sets)


def search(store: SearchStore, request: Request) -> Flow[Answer]:
    """Return the answer of an index. Raises IndexMissing.

    One round trip if this process knows the shape of the index and the values of the facets that are counted.
    """
    began, shape = monotonic(), store.generations.shape
    reason = ""
    while True:
        if not shape.active:
            shape = yield from store.generations.read()
        if not shape.active:
            raise IndexMissing(f"{store!r} was never built. Run: manage.py rk_search rebuild {store.name}")
        generation = shape.active[0]
        prefix = store.prefix(generation)
        spellings = (yield from _spell(store, generation, request.query)) if request.fuzzy else {}
        plan = Plan(request, prefix, spellings)
        values: Mapping[str, Sequence[str]] = {}
        if request.facets:
            if reason == "values" or prefix not in _values or set(request.facets) - set(_values[prefix][1]):
                yield from _learn_values(store, generation, request.facets)
            number, known = _values[prefix]
            values = {name: known[name] for name in request.facets}
            plan.count(number, values)
        reply = yield _call(store, shape, request, plan)
        reason = reply[0].decode()
        if reason == "stale":
            shape = store.generations.learn(*reply[1:])
        elif reason == "lost":
            raise IndexMissing(f"Keys of {store!r} are gone. Run: manage.py rk_search rebuild {store.name}")
        elif not reason:
            break
    if (seconds := monotonic() - began) >= SLOW:
        _slow.setdefault(store.name, deque(maxlen=100)).append((f"{seconds * 1000:.0f} {_shown(request)}", monotonic()))
    return _answer(request, plan, values, reply)


def _call(store: SearchStore, shape: Shape, request: Request, plan: Plan) -> Any:
    packed = json.dumps(plan.steps, ensure_ascii=False, separators=(",", ":"))
    named = "\0".join((packed, *plan.sets)).encode()
    digest = blake2b(named, digest_size=12).hexdigest()
    parts = store.parts(shape.active[0])
    plan.header = store.key(f"header:{digest}")
    keys = [store.generations.state, *parts, store.key(f"hits:{digest}"), plan.header]
    keys += [store.key("empty"), store.key("slow"), store.key("found"), store.key("extra")]
    args: list[Argument] = [str(store.generations.parameters), str(shape), packed, request.offset, request.limit]
    args += [_shown(request), json.dumps(_take_slow(store.name)), len(plan.prefix.encode())]
    return SEARCH([*keys, *plan.sets], args)


def _answer(request: Request, plan: Plan, values: Mapping[str, Sequence[str]], reply: Sequence[Any]) -> Answer:
    _reason, page, total, sizes, shift = reply
    scores = {id.decode(): float(score) + float(shift) for id, score in zip(page[::2], page[1::2], strict=True)}
    facets = {}
    for (name, listed), counts in zip(values.items(), json.loads(sizes) or [], strict=True):
        pairs = sorted(zip(listed, counts or [], strict=True), key=lambda pair: (-pair[1], pair[0]))
        facets[name] = {value: count for value, count in pairs if count}
    parts = [(name, place, plan.sets[place - FIRST - 1]) for name, place in plan.parts]
    words = frozenset(plan.words)
    return Answer(scores, int(total), facets, words, plan.header, parts)


def _spell(store: SearchStore, generation: Generation, query: Query) -> Flow[dict[str, list[str]]]:
    """Return for each word the stored words within one edit. One round trip."""
    words = store.parts(generation)[1]
    edited = {word: list(dict.fromkeys(edits(word))) for word in query.positive}
    edited = {word: others for word, others in edited.items() if others}
    replies = (yield Batch([Call("ZMSCORE", words, *others) for others in edited.values()])) if edited else []
    return {
        word: [other for other, score in zip(others, scores, strict=True) if score is not None][:MOST_SPELLINGS]
        for (word, others), scores in zip(edited.items(), replies, strict=True)
    }


def _learn_values(store: SearchStore, generation: Generation, names: Sequence[str]) -> Flow[None]:
    """Remember the most frequent values of facets. Two round trips."""
    _docs, words, stats = store.parts(generation)
    prefix = store.prefix(generation)
    bounds = [(f"[{facet_end(name, '')}", f"({facet_end(name, '')[:-1]}>") for name in names]
    number, *found = yield Batch(
        [
            Call("HGET", stats, "values"),
            *(Call("ZRANGEBYLEX", words, low, high, "LIMIT", 0, MOST_VALUES) for low, high in bounds),
        ]
    )
    ends = [end.decode() for listed in found for end in listed]
    sizes = dict(zip(ends, (yield Batch([Call("ZCARD", prefix + end) for end in ends])) if ends else [], strict=True))
    values = {}
    for name, listed in zip(names, found, strict=True):
        largest = sorted((end.decode() for end in listed), key=lambda end: -sizes[end])[:MOST_COUNTED]
        values[name] = [end.removeprefix(facet_end(name, "")) for end in largest]
    if len(_values) >= 1000:
        _values.clear()
    before = _values.get(prefix, (0, {}))
    _values[prefix] = int(number or 0), {**(before[1] if before[0] == int(number or 0) else {}), **values}


def _shown(request: Request) -> str:
    return clean(without_secrets(request.text[: 4 * LONGEST_ENTRY]))[:LONGEST_ENTRY]


def _take_slow(name: str) -> list[tuple[str, int]]:
    entries = _slow.pop(name, ())
    return [(text, round((monotonic() - time) * 1000)) for text, time in entries]
