"""A batch of views on its way to the server: one script per page and hour, which recognises a repeated batch."""

import logging
from itertools import chain
from time import monotonic
from typing import Any

from redis_kit.core import conf, scripts
from redis_kit.core.background import TEMPORARY
from redis_kit.core.errors import KeyConflict, PermissionDenied, PoolExhausted, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Batch, Call
from redis_kit.pageviews import keys, periods
from redis_kit.pageviews.errors import log_once
from redis_kit.pageviews.pages import OTHER, SITE
from redis_kit.pageviews.settings import PageViewSettings
from redis_kit.pageviews.tally import Event, Tally, Target, identity_kind, tally

ADMIT = scripts.load("redis_kit.pageviews", "admit")
COUNT = scripts.load("redis_kit.pageviews", "count")
MEMORY = 3600.0  # seconds for which the server recognises a repeated batch
PAGES_TTL = 2 * 86_400.0
MINUTE_TTL = 600.0

logger = logging.getLogger("redis_kit.pageviews")
_full: set[str] = set()  # days whose limit is reached, and logged
_admitted: dict[tuple[str, str, str], set[str]] = {}  # by this process: prefix, connection, day -> names


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
            self._calls = {
                target: counting(target[0], counted, writer=self._writer, number=self._number)
                for target, counted in tally(self._named).items()
            }
        replies = zip(self._calls, (yield from self._replies()), strict=True)
        errors = {target: reply for target, reply in replies if isinstance(reply, Exception)}
        if temporary := next((error for error in errors.values() if isinstance(error, TEMPORARY)), None):
            raise temporary
        for error in errors.values():
            log_once(error)
        return sum(not errors.keys().isdisjoint(event.targets) for event in self._named if not event.bot)

    def _replies(self) -> Flow[list[Any]]:
        """Return the reply of each call, or the error that concerns only this call."""
        calls = list(self._calls.values())
        try:
            replies = yield Batch(calls, lenient=True)
            if lost := next((reply for reply in replies if isinstance(reply, RedisUnavailable)), None):
                lost.indeterminate = True  # other nodes of a Cluster have answered
                raise lost
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


def count_one(event: Event, *, using: str) -> Flow[str]:
    """Count one event now; return "refused" if the server refused it for good for one of its targets, else "".

    One round trip, and one more if a page is new to this process.
    """
    return "refused" if (yield from ViewBatch([event], using=using).send()) else ""


def counting(name: str, counted: Tally, *, writer: str = "", number: int = 0) -> ScriptCall:
    """Return the call that adds an hour's views of one name; a ``number`` makes it recognize a repetition."""
    options, last = conf.section(PageViewSettings), counted.last
    ttls = [_ms(seconds) for seconds in (MEMORY, options.RETENTION, options.HOUR_RETENTION, MINUTE_TTL)]
    lists = [
        [text for pair in counts.items() for text in pair]
        for counts in (counted.members, counted.referrers, counted.campaigns)
    ]
    figures = [last.hour, last.day, int(last.timestamp()), periods.TRENDING_HALF_LIFE, counted.views, counted.bots]
    visitors, online = counted.visitors_by_age()
    arguments = [number, *ttls, *figures, *map(len, lists), online, writer, *chain(*lists), *visitors]
    return COUNT(keys.hour_keys(name, last), arguments)


def admitted(events: list[Event], *, using: str) -> Flow[list[Event]]:
    """Return the events under the names that count: pages beyond the day's ``MAX_PAGES`` become ``(other)``."""
    wanted: dict[str, dict[str, None]] = {}
    for event in events:
        wanted.setdefault(event.day, {}).update(dict.fromkeys(event.names))
    admitted_names = {day: _admitted_on(day, using) for day in wanted}
    for day, names in wanted.items():
        unknown = [name for name in names if name not in admitted_names[day]]
        if unknown:
            replies = yield from _admit(day, unknown)
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


def dropped_today(count: int) -> Flow[None]:
    """Add to the number of views that were dropped today. One round trip."""
    now = periods.now()
    days, ttl = keys.views(SITE, periods.month_of(now.date())), conf.section(PageViewSettings).RETENTION
    yield Batch([Call("HINCRBY", days, f"{keys.DROPPED}{now.day}", count), Call("PEXPIRE", days, _ms(ttl))])


def _admit(day: str, names: list[str]) -> Flow[list[int]]:
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


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


conf.on_change(_full.clear)
conf.on_change(_admitted.clear)  # another server may have other pages among those that count
