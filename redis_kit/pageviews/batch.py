"""A batch of views on its way to the server: one script per page and hour, which recognises a repeated batch."""

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from time import monotonic
from typing import Any, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.errors import KeyConflict, PermissionDenied, PoolExhausted
from redis_kit.core.flow import Flow
from redis_kit.core.keys import hashed
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Batch, Call
from redis_kit.pageviews import keys, periods
from redis_kit.pageviews.errors import TEMPORARY, log_once
from redis_kit.pageviews.pages import OTHER, SITE, encoded
from redis_kit.pageviews.settings import PageViewSettings

Target = tuple[str, str]  # an encoded name, and an hour

ADMIT = scripts.load("redis_kit.pageviews", "admit")
COUNT = scripts.load("redis_kit.pageviews", "count")
MEMORY = 3600.0  # seconds for which the server recognises a repeated batch
PAGES_TTL = 2 * 86_400.0
MINUTE_TTL = 600.0
LONGEST_SOURCE = 64  # characters: Redis stores a list of longer texts in ten times the memory

logger = logging.getLogger("redis_kit.pageviews")
_full: set[str] = set()  # days whose limit is reached, and logged
_admitted: dict[tuple[str, str, str], set[str]] = {}  # by this process: prefix, connection, day -> names


class Event(NamedTuple):
    """One view: its time in the site's time zone, its page, the key of its object and the hash of its visitor.

    Without an object or a visitor these are "". ``referrer`` is the host of the page before, and ``campaign`` a text of
    the project; of both the first 64 characters count. The request of a ``bot`` does not count as a view: only the
    number of these requests is stored, for the page and the site.
    """

    moment: datetime
    page: str
    key: str
    visitor: str
    referrer: str = ""
    campaign: str = ""
    bot: bool = False

    @property
    def day(self) -> str:
        """Return its day, such as ``2026-11-22``."""
        return self.moment.isoformat()[:10]

    @property
    def targets(self) -> list[Target]:
        """Return the names under which it counts: the site, the page and the object, with the hour."""
        hour = self.moment.isoformat()[:13]
        return [(name, hour) for name in (SITE, *self.names)]

    @property
    def names(self) -> list[str]:
        """Return the names to admit: the page, and its object if it has one."""
        page = encoded(self.page)
        return [page, encoded(self.page, self.key)] if self.key and not self.bot else [page]


@dataclass
class Tally:
    """The views and visitors of a page, an object or the site in one hour. ``last`` is the time of the latest view."""

    last: datetime
    views: int = 0
    bots: int = 0
    visitors: set[str] = field(default_factory=set)
    members: Counter[str] = field(default_factory=Counter)
    referrers: Counter[str] = field(default_factory=Counter)
    campaigns: Counter[str] = field(default_factory=Counter)

    def add(self, event: Event, member: str) -> None:
        """Add an event. ``member`` is the page or object that it is a view of, if the list of these has it."""
        self.last = max(self.last, event.moment)
        if event.bot:
            self.bots += 1
            return
        self.views += 1
        if event.visitor:
            self.visitors.add(event.visitor)
        if member:
            self.members[member] += 1
        if event.referrer:
            self.referrers[_source(event.referrer)] += 1
        if event.campaign:
            self.campaigns[_source(event.campaign)] += 1


class ViewBatch:
    """Events on their way to the server. They do not change, so that a second try is the same as the first.

    ``tried`` is the time of the first try that may have been executed, on the monotonic clock; None before that.
    """

    def __init__(self, events: list[Event], *, using: str, writer: str = "", number: int = 0) -> None:
        self.events, self.using = events, using
        self.tried: float | None = None
        self._writer, self._number = writer, number
        self._named: list[Event] = []
        self._calls: dict[Target, ScriptCall] = {}

    def send(self) -> Flow[int]:
        """Count the events, and return how many of them the server refused for good for one of their targets.

        One round trip, and one more if a page is new to this process. After one of the errors in ``TEMPORARY`` the
        batch may be sent again within an hour from ``tried``: the server leaves out views that it has counted.
        """
        if not self._calls:
            self._named = yield from admitted(self.events, using=self.using)
            self._calls = {target: self._call(target[0], counted) for target, counted in tally(self._named).items()}
        replies = yield from self._replies()
        errors = {
            target: reply for target, reply in zip(self._calls, replies, strict=True) if isinstance(reply, Exception)
        }
        for error in errors.values():
            if isinstance(error, TEMPORARY):
                raise error
        for error in errors.values():
            log_once(error)
        if not errors:
            return 0
        return sum(not errors.keys().isdisjoint(event.targets) for event in self._named if not event.bot)

    def _replies(self) -> Flow[list[Any]]:
        """Return the reply of each call, or the error that concerns only this call."""
        calls = list(self._calls.values())
        try:
            replies = yield Batch(calls, lenient=True)
        except (PermissionDenied, PoolExhausted):
            raise  # without a connection nothing was sent
        except TEMPORARY:
            self._note_try()
            raise
        except Exception as error:
            # An unknown error hides the replies of the other calls.
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

    def _call(self, name: str, counted: Tally) -> ScriptCall:
        options, last = conf.section(PageViewSettings), counted.last
        ttls = [_ms(seconds) for seconds in (MEMORY, options.RETENTION, options.HOUR_RETENTION, MINUTE_TTL)]
        lists = [
            [text for pair in counts.items() for text in pair]
            for counts in (counted.members, counted.referrers, counted.campaigns)
        ]
        figures = [last.hour, last.day, int(last.timestamp()), options.TRENDING_HALF_LIFE, counted.views, counted.bots]
        arguments = [self._number, *ttls, *figures, *map(len, lists), *chain(*lists), *counted.visitors]
        return COUNT(keys.hour_keys(name, last, writer=self._writer), arguments)


def tally(events: Iterable[Event]) -> dict[Target, Tally]:
    """Return the events added up by page, object and site, and by hour."""
    tallies: dict[Target, Tally] = {}
    for event in events:
        members = (encoded(event.page), encoded(event.key) if event.key else "", "")
        for target, member in zip(event.targets, members, strict=False):
            if target not in tallies:
                tallies[target] = Tally(event.moment)
            tallies[target].add(event, member)
    return tallies


def admitted(events: list[Event], *, using: str) -> Flow[list[Event]]:
    """Return the events under the names that count: pages beyond the day's ``MAX_PAGES`` become ``(other)``."""
    prefix = conf.section(KitSettings).PREFIX
    wanted: dict[str, dict[str, None]] = {}
    for event in events:
        wanted.setdefault(event.day, {}).update(dict.fromkeys(event.names))
    admitted_names = {day: _admitted.setdefault((prefix, using, day), set()) for day in wanted}
    for day, names in wanted.items():
        unknown = [name for name in names if name not in admitted_names[day]]
        if unknown:
            replies = yield from _admit(day, unknown)
            admitted_names[day].update(name for name, may in zip(unknown, replies, strict=False) if may)
            if 0 in replies:
                _log_full(day)
    for past in list(_admitted)[:-8]:
        _admitted.pop(past, None)
    return [_renamed(event, admitted_names[event.day]) for event in events]


def dropped_today(count: int) -> Flow[None]:
    """Add to the number of views that were dropped today. One round trip."""
    now = periods.now()
    days, ttl = keys.views(SITE, periods.month_of(now.date())), conf.section(PageViewSettings).RETENTION
    yield Batch([Call("HINCRBY", days, f"{keys.DROPPED}{now.day}", count), Call("PEXPIRE", days, _ms(ttl))])


def _log_full(day: str) -> None:
    """Log once for each day that its limit is reached."""
    if day not in _full:
        _full.clear()
        _full.add(day)
        text = "%s has as many pages and objects as MAX_PAGES allows, %d; views of further ones count under %s."
        logger.warning(text, day, conf.section(PageViewSettings).MAX_PAGES, OTHER)


def _admit(day: str, names: list[str]) -> Flow[list[int]]:
    """Return 1 for each name that may be counted; nothing if a key has another type: they count as ``(other)``."""
    options, month = conf.section(PageViewSettings), day[:7]
    kind = f"{day[8:]} {identity_kind(options)}"
    arguments: list[Any] = [options.MAX_PAGES, _ms(PAGES_TTL), _ms(options.RETENTION), kind, *names]
    try:
        replies: list[int] = yield ADMIT([keys.pages(SITE, day), keys.identities(SITE, month)], arguments)
        return replies
    except KeyConflict as error:
        log_once(error)
        return []


def _renamed(event: Event, admitted_names: set[str]) -> Event:
    page, *objects = event.names
    if page not in admitted_names:
        return event._replace(page=OTHER, key="")
    return event._replace(key=OTHER) if objects and objects[0] not in admitted_names else event


def identified(visitor: str) -> str:
    """Return the keyed hash that is stored for a visitor."""
    return hashed(f"visitor:{visitor}") if visitor else ""


def identity_kind(options: PageViewSettings) -> str:
    """Return the kind of identity that visitors have now: the setting, and a sign of the key that hashes them."""
    return f"{options.VISITOR} {hashed('kind of identity')[:6]}"


def _source(text: str) -> str:
    """Return the beginning of a text that anybody may have sent, as valid Unicode."""
    return text[:LONGEST_SOURCE].encode(errors="replace").decode()


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


conf.on_change(_full.clear)
conf.on_change(_admitted.clear)  # another server may have other pages among those that count
