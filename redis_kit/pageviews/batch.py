"""Views as events, and batches of them: one script per page and hour, which recognises a repeated batch."""

import logging
from collections import Counter
from datetime import datetime, timedelta
from operator import attrgetter
from time import monotonic
from typing import Any, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.background import TEMPORARY
from redis_kit.core.errors import KeyConflict, PermissionDenied, PoolExhausted, RedisKitError, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.keys import hashed
from redis_kit.core.logs.error_text import described, exc_info
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Argument, Batch, Call, TolerantBatch
from redis_kit.pageviews import keys, periods
from redis_kit.pageviews.pages import OTHER, SITE, encoded
from redis_kit.pageviews.settings import PageViewSettings

Target = tuple[str, str]  # an encoded name, and an hour

ADMIT = scripts.load("redis_kit.pageviews", "admit")
COUNT = scripts.load("redis_kit.pageviews", "count")
ONLINE = timedelta(minutes=5)  # before the latest view of a batch; visitors of that time are in the minute's sketch
LONGEST_SOURCE = 64  # characters: Redis stores a list of longer texts in ten times the memory
MEMORY = 3600.0  # seconds for which the server recognises a repeated batch
PAGES_TTL = 2 * 86_400.0
MINUTE_TTL = 600.0
MAX_LOGGED = 100  # texts

logger = logging.getLogger("redis_kit.pageviews")
_logged: set[str] = set()  # texts of errors
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


class ViewBatch:
    """Events on their way to the server. They do not change, so that a second try is the same as the first.

    ``tried`` is the time of the first try that may have been executed, on the monotonic clock; None before that.
    """

    def __init__(self, events: list[Event], *, using: str, writer: str = "", number: int = 0) -> None:
        self.events, self.using = events, using
        self.tried: float | None = None
        self._writer, self._number = writer, number
        self._calls: dict[Target, ScriptCall] = {}

    def send(self) -> Flow[int]:
        """Count the events, and return how many of them the server refused for good for one of their targets.

        One round trip, and one more if a page is new to this process. After one of the errors in ``TEMPORARY`` the
        batch may be sent again within an hour from ``tried``: the server leaves out views that it has counted.
        """
        if not self._calls:
            self.events = yield from _admit(self.events, using=self.using)
            self._calls = {target: self._counting(target[0], events) for target, events in self._by_target().items()}
        try:
            replies = yield TolerantBatch(list(self._calls.values()))
            if lost := next((reply for reply in replies if isinstance(reply, RedisUnavailable)), None):
                known = (isinstance(reply, RedisUnavailable) and not reply.indeterminate for reply in replies)
                lost.indeterminate |= not all(known)  # other nodes of a Cluster may have answered
                raise lost
        except (PermissionDenied, PoolExhausted):
            raise  # without a connection nothing was sent
        except TEMPORARY:
            self.tried = self.tried or monotonic()
            raise
        pairs = zip(self._calls, replies, strict=True)
        errors = {target: reply for target, reply in pairs if isinstance(reply, Exception)}
        if len(errors) < len(replies):
            self.tried = self.tried or monotonic()
        if temporary := next((error for error in errors.values() if isinstance(error, TEMPORARY)), None):
            raise temporary
        for error in errors.values():
            log_once(error)
        return sum(not errors.keys().isdisjoint(event.targets) for event in self.events if not event.bot)

    def _by_target(self) -> dict[Target, list[tuple[Event, str]]]:
        """Return the events of each page, object and the site in each hour, each with its place in a list of these."""
        by_target: dict[Target, list[tuple[Event, str]]] = {}
        for event in self.events:
            targets = event.targets
            members = [*(name.rpartition(":")[2] for name, _ in targets[1:]), ""]  # of the site pages, of a page keys
            for target, member in zip(targets, members, strict=True):
                by_target.setdefault(target, []).append((event, member))
        return by_target

    def _counting(self, name: str, events: list[tuple[Event, str]]) -> ScriptCall:
        """Return the call that adds an hour's events to one name; a number makes it recognise a repetition."""
        options, last = conf.section(PageViewSettings), max(event.moment for event, _ in events)
        views = [event for event, _ in events if not event.bot]
        seen = {event.visitor: event.moment for event in sorted(views, key=attrgetter("moment")) if event.visitor}
        visitors = sorted(seen, key=seen.__getitem__, reverse=True)  # those who are online now come first
        counts = (
            Counter(member for event, member in events if member and not event.bot),
            Counter(_source(event.referrer) for event in views if event.referrer),
            Counter(_source(event.campaign) for event in views if event.campaign),
        )
        ttls = [_ms(seconds) for seconds in (MEMORY, options.RETENTION, options.HOUR_RETENTION, MINUTE_TTL)]
        times = [last.hour, last.day, int(last.timestamp()), periods.TRENDING_HALF_LIFE]
        figures = [len(views), len(events) - len(views), *map(len, counts)]
        texts: list[Argument] = []
        for count in counts:
            texts += [*count, *count.values()]
        online = sum(moment >= last - ONLINE for moment in seen.values())
        arguments = [self._number, *ttls, *times, *figures, online, self._writer, *texts, *visitors]
        return COUNT(keys.hour_keys(name, last), arguments)


def log_once(error: Exception, message: str = "Redis refused page views for good: %s") -> None:
    """Log an error that repeats with each view, once for each text: the text of a wrong key names the key."""
    text = described(error)
    if text not in _logged:
        if len(_logged) >= MAX_LOGGED:
            _logged.clear()
        _logged.add(text)
        # The kit's errors say what to do; any other needs its traceback.
        logger.error(message, text, exc_info=None if isinstance(error, RedisKitError) else exc_info(error))


def identified(visitor: str) -> str:
    """Return the keyed hash that is stored for a visitor."""
    return hashed(f"visitor:{visitor}") if visitor else ""


def identity_kind(options: PageViewSettings) -> str:
    """Return the kind of identity that visitors have now: the setting, and a sign of the key that hashes them."""
    return f"{options.VISITOR} {hashed('kind of identity')[:6]}"


def dropped_today(count: int) -> Flow[None]:
    """Add to the number of views that were dropped today. One round trip."""
    now = periods.now()
    days, ttl = keys.views(SITE, periods.month_of(now.date())), conf.section(PageViewSettings).RETENTION
    yield Batch([Call("HINCRBY", days, f"{keys.DROPPED}{now.day}", count), Call("PEXPIRE", days, _ms(ttl))])


def _admit(events: list[Event], *, using: str) -> Flow[list[Event]]:
    """Return the events under the names that count: pages beyond the day's ``MAX_PAGES`` become ``(other)``."""
    wanted: dict[str, dict[str, None]] = {}
    for event in events:
        wanted.setdefault(event.day, {}).update(dict.fromkeys(event.names))
    admitted_names = {day: _admitted_on(day, using) for day in wanted}
    for day, names in wanted.items():
        unknown = [name for name in names if name not in admitted_names[day]]
        if unknown:
            replies = yield from _may_count(day, unknown)
            admitted_names[day].update(name for name, may in zip(unknown, replies, strict=False) if may)
            if 0 in replies and day not in _full:  # it is logged once for each day
                _full.clear()
                _full.add(day)
                text = "%s has as many pages and objects as MAX_PAGES allows, %d; views of further ones count under %s."
                logger.warning(text, day, conf.section(PageViewSettings).MAX_PAGES, OTHER)
    return [_renamed(event, admitted_names[event.day]) for event in events]


def _admitted_on(day: str, using: str) -> set[str]:
    """Return the names that are known to be admitted on a day. Of other days the last eight are remembered."""
    names = _admitted.setdefault((conf.section(KitSettings).PREFIX, using, day), set())
    for past in list(_admitted)[:-9]:
        _admitted.pop(past, None)
    return names


def _may_count(day: str, names: list[str]) -> Flow[list[int]]:
    """Return 1 for each name that may be counted; nothing if a key has another type: they count as ``(other)``."""
    try:
        options = conf.section(PageViewSettings)
        kind = f"{day[8:]} {identity_kind(options)}"
        arguments: list[Any] = [options.MAX_PAGES, _ms(PAGES_TTL), kind, _ms(options.RETENTION), *names]
        replies: list[int] = yield ADMIT([keys.pages(SITE, day), keys.identities(SITE, day[:7])], arguments)
        return replies
    except KeyConflict as error:
        log_once(error)
        return []


def _renamed(event: Event, admitted_names: set[str]) -> Event:
    """Return the event as it counts, with as many of its names as are admitted, from the first one on."""
    count = sum(name in admitted_names for name in event.names)
    if count == len(event.names):
        return event
    return event._replace(key=OTHER) if count else event._replace(page=OTHER, key="")


def _source(text: str) -> str:
    """Return the beginning of a text that anybody may have sent, as valid Unicode."""
    return text[:LONGEST_SOURCE].encode(errors="replace").decode()


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


conf.on_change(_full.clear)
conf.on_change(_admitted.clear)  # another server may have other pages among those that count
