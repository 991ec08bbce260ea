"""How views get to the server: one script per page and hour, which knows a batch that it has seen before."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.errors import OutOfMemory, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.keys import hashed
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch
from redis_kit.pageviews.component import PageViewSettings
from redis_kit.pageviews.pages import OTHER, SITE, encoded

ADMIT = scripts.load(__package__, "admit")
COUNT = scripts.load(__package__, "count")
MEMORY = 3600.0  # seconds for which a batch is known again
PAGES_KEPT = 2 * 86_400.0

_admitted: dict[tuple[str, str, str], set[str]] = {}  # what this process knows of: prefix, connection, day -> names


class Event(NamedTuple):
    """One view: when, in the site's time zone, of what, and the hash of who; no key or visitor is an empty text."""

    moment: datetime
    page: str
    key: str
    visitor: str

    @property
    def names(self) -> list[str]:
        """Return what has to be admitted: the page, and its object where it has one."""
        page = encoded(self.page)
        return [page, encoded(self.page, self.key)] if self.key else [page]


@dataclass
class Tally:
    """What one page, object or site had in one hour."""

    views: int = 0
    visitors: set[str] = field(default_factory=set)
    members: Counter[str] = field(default_factory=Counter)


class Counting:
    """Events on their way to the server, and frozen, so that a second try is the same as the first."""

    def __init__(self, events: list[Event], *, using: str, writer: str = "", number: int = 0) -> None:
        self.events, self.using = events, using
        self._writer, self._number = writer, number
        self._calls: list[ScriptCall] = []

    def send(self) -> Flow[int]:
        """Count them and return how many calls the server refused for good.

        One round trip, one more where a page is new to this process. After RedisUnavailable or OutOfMemory it may be
        sent again within the hour: what was counted the first time is left out.
        """
        if not self._calls:
            events = yield from admitted(self.events, using=self.using)
            tallies = tally(events).items()
            self._calls = [self._call(name, hour, found) for (name, hour), found in tallies]
        try:
            yield Batch(self._calls)
        except (RedisUnavailable, OutOfMemory):
            raise
        except Exception:
            if not self._number:
                return 1
            return (yield from self._one_by_one())
        return 0

    def _one_by_one(self) -> Flow[int]:
        refused = 0
        for call in self._calls:
            try:
                yield call
            except (RedisUnavailable, OutOfMemory):
                raise
            except Exception:
                refused += 1
        return refused

    def _call(self, name: str, hour: str, found: Tally) -> ScriptCall:
        options = conf.section(PageViewSettings)
        day, month = hour[:10], hour[:7]
        parts = (
            f"batch:{self._writer}:{hour}",
            *(f"views:{day}", f"views:{month}"),
            *(f"visitors:{hour}", f"visitors:{day}", f"visitors:{month}"),
            f"top:{day}",
        )
        members = [text for member in found.members.items() for text in member]
        spans = [_ms(seconds) for seconds in (MEMORY, options.RETENTION, options.HOUR_RETENTION)]
        fields = [int(hour[11:]), int(day[8:]), found.views, len(found.members)]
        return COUNT([key(name, part) for part in parts], [self._number, *spans, *fields, *members, *found.visitors])


def tally(events: Iterable[Event]) -> dict[tuple[str, str], Tally]:
    """Return the events added up by page, object and site, and by hour."""
    found: dict[tuple[str, str], Tally] = {}

    def add(name: str, hour: str, visitor: str, member: str) -> None:
        entry = found.setdefault((name, hour), Tally())
        entry.views += 1
        if visitor:
            entry.visitors.add(visitor)
        if member:
            entry.members[member] += 1

    for event in events:
        hour = f"{event.moment:%Y-%m-%dT%H}"
        add(SITE, hour, event.visitor, encoded(event.page))
        add(encoded(event.page), hour, event.visitor, encoded(event.key) if event.key else "")
        if event.key:
            add(encoded(event.page, event.key), hour, event.visitor, "")
    return found


def admitted(events: list[Event], *, using: str) -> Flow[list[Event]]:
    """Return the events under the names that count: those beyond the day's ``MAX_PAGES`` become ``(other)``."""
    prefix, most = conf.section(conf.KitSettings).PREFIX, conf.section(PageViewSettings).MAX_PAGES
    wanted: dict[str, dict[str, None]] = {}
    for event in events:
        wanted.setdefault(f"{event.moment:%Y-%m-%d}", {}).update(dict.fromkeys(event.names))
    known = {day: _admitted.setdefault((prefix, using, day), set()) for day in wanted}
    for day, names in wanted.items():
        unknown = [name for name in names if name not in known[day]]
        if unknown:
            replies = yield ADMIT([key(SITE, f"pages:{day}")], [most, _ms(PAGES_KEPT), *unknown])
            known[day].update(name for name, may in zip(unknown, replies, strict=True) if may)
    for gone_by in list(_admitted)[:-8]:
        _admitted.pop(gone_by, None)
    return [_renamed(event, known[f"{event.moment:%Y-%m-%d}"]) for event in events]


def _renamed(event: Event, known: set[str]) -> Event:
    page, *objects = event.names
    if page not in known:
        return event._replace(page=OTHER, key="")
    return event._replace(key=OTHER) if objects and objects[0] not in known else event


def identified(visitor: str) -> str:
    """Return what is stored of a visitor: a keyed hash."""
    return hashed(f"visitor:{visitor}") if visitor else ""


def key(name: str, part: str) -> str:
    """Return a key of what has an encoded name."""
    return f"{conf.section(conf.KitSettings).PREFIX}:{{pageviews:{name}}}:{part}"


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
