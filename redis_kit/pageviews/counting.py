"""How views get to the server: one script per page and hour, which knows a batch that it has seen before."""

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import Any, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.errors import (
    KeyConflict,
    OutOfMemory,
    PermissionDenied,
    PoolExhausted,
    RedisKitError,
    RedisUnavailable,
)
from redis_kit.core.flow import Flow
from redis_kit.core.keys import hashed
from redis_kit.core.logs.error_text import described, exc_info
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Batch
from redis_kit.pageviews.component import PageViewSettings
from redis_kit.pageviews.pages import OTHER, SITE, encoded

logger = logging.getLogger("redis_kit.pageviews")

Place = tuple[str, str]  # an encoded name, and an hour
# What ends by itself or by an operator: views wait for that. All other errors concern one key, for good.
TEMPORARY = (RedisUnavailable, OutOfMemory, PermissionDenied, PoolExhausted)
MOST_LOGGED = 100  # texts

ADMIT = scripts.load("redis_kit.pageviews", "admit")
COUNT = scripts.load("redis_kit.pageviews", "count")
MEMORY = 3600.0  # seconds for which a batch is known again
PAGES_KEPT = 2 * 86_400.0

_admitted: dict[tuple[str, str, str], set[str]] = {}  # what this process knows of: prefix, connection, day -> names

_logged: set[str] = set()  # texts of errors


class Event(NamedTuple):
    """One view: when, in the site's time zone, of what, and the hash of who; no key or visitor is an empty text."""

    moment: datetime
    page: str
    key: str
    visitor: str

    @property
    def places(self) -> list[Place]:
        """Return where it counts: the names of the site, the page and the object, with the hour."""
        hour = f"{self.moment:%Y-%m-%dT%H}"
        return [(name, hour) for name in (SITE, *self.names)]

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
    """Events on their way to the server, and frozen, so that a second try is the same as the first.

    ``tried`` is when a try may first have been carried out, on the monotonic clock; None before that.
    """

    def __init__(self, events: list[Event], *, using: str, writer: str = "", number: int = 0) -> None:
        self.events, self.using = events, using
        self.tried: float | None = None
        self._writer, self._number = writer, number
        self._named: list[Event] = []
        self._calls: dict[Place, ScriptCall] = {}

    def send(self) -> Flow[int]:
        """Count them, and return how many of them the server refused for good in one of their places.

        One round trip, one more where a page is new to this process. After one of the errors in ``TEMPORARY`` it may be
        sent again within an hour from ``tried``: what was counted the first time is left out.
        """
        if not self._calls:
            self._named = yield from admitted(self.events, using=self.using)
            self._calls = {place: self._call(*place, found) for place, found in tally(self._named).items()}
        replies = yield from self._replies()
        wrong = {
            place: reply for place, reply in zip(self._calls, replies, strict=True) if isinstance(reply, Exception)
        }
        for error in wrong.values():
            if isinstance(error, TEMPORARY):
                raise error
        for error in wrong.values():
            log_once(error)
        return sum(not wrong.keys().isdisjoint(event.places) for event in self._named) if wrong else 0

    def _replies(self) -> Flow[list[Any]]:
        """Return the reply of each call, or the error that concerns it alone."""
        calls = list(self._calls.values())
        try:
            replies = yield Batch(calls, lenient=True)
        except (PermissionDenied, PoolExhausted):
            raise  # there was no connection: nothing was sent
        except TEMPORARY:
            self._note_try()
            raise
        except Exception as error:
            # An error that the kit does not know hides the replies of the others.
            replies = (yield from self._one_by_one(calls)) if self._number else [error] * len(calls)
        if not all(isinstance(reply, Exception) for reply in replies):
            self._note_try()
        return list(replies)

    def _one_by_one(self, calls: list[ScriptCall]) -> Flow[list[Any]]:
        replies: list[Any] = []
        for call in calls:
            try:
                replies.append((yield call))
            except TEMPORARY:
                raise
            except Exception as error:
                replies.append(error)
        return replies

    def _note_try(self) -> None:
        if self.tried is None:
            self.tried = monotonic()

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


def tally(events: Iterable[Event]) -> dict[Place, Tally]:
    """Return the events added up by page, object and site, and by hour."""
    found: dict[Place, Tally] = {}

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
    prefix, most = conf.section(KitSettings).PREFIX, conf.section(PageViewSettings).MAX_PAGES
    wanted: dict[str, dict[str, None]] = {}
    for event in events:
        wanted.setdefault(f"{event.moment:%Y-%m-%d}", {}).update(dict.fromkeys(event.names))
    known = {day: _admitted.setdefault((prefix, using, day), set()) for day in wanted}
    for day, names in wanted.items():
        unknown = [name for name in names if name not in known[day]]
        if unknown:
            replies = yield from _admit(day, [most, _ms(PAGES_KEPT), *unknown])
            known[day].update(name for name, may in zip(unknown, replies, strict=False) if may)
    for gone_by in list(_admitted)[:-8]:
        _admitted.pop(gone_by, None)
    return [_renamed(event, known[f"{event.moment:%Y-%m-%d}"]) for event in events]


def _admit(day: str, args: list[Any]) -> Flow[list[int]]:
    """Return which names may be counted; none if the key is of another type, so that they count as ``(other)``."""
    try:
        replies: list[int] = yield ADMIT([key(SITE, f"pages:{day}")], args)
        return replies
    except KeyConflict as error:
        log_once(error)
        return []


def log_once(error: Exception, message: str = "Redis refused page views for good: %s") -> None:
    """Log an error that comes again with each view, once for each text: that of a wrong key names the key."""
    text = described(error)
    if text not in _logged:
        if len(_logged) >= MOST_LOGGED:
            _logged.clear()
        _logged.add(text)
        # The kit's own errors say what to do; of any other the place is wanted.
        logger.error(message, text, exc_info=None if isinstance(error, RedisKitError) else exc_info(error))


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
    return f"{conf.section(KitSettings).PREFIX}:{{pageviews:{name}}}:{part}"


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
