"""Views as events, and events added up by page, object and site."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from redis_kit.core.keys import hashed
from redis_kit.pageviews.pages import SITE, encoded
from redis_kit.pageviews.settings import PageViewSettings

Target = tuple[str, str]  # an encoded name, and an hour

ONLINE = timedelta(minutes=5)  # before the latest view of a batch; visitors of that time are in the minute's sketch
LONGEST_SOURCE = 64  # characters: Redis stores a list of longer texts in ten times the memory


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
    """The views of a page, an object or the site in one hour, and each visitor's latest time.

    ``last`` is the time of the latest view.
    """

    last: datetime
    views: int = 0
    bots: int = 0
    visitors: dict[str, datetime] = field(default_factory=dict)
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
            self.visitors[event.visitor] = max(event.moment, self.visitors.get(event.visitor, event.moment))
        if member:
            self.members[member] += 1
        if event.referrer:
            self.referrers[_source(event.referrer)] += 1
        if event.campaign:
            self.campaigns[_source(event.campaign)] += 1

    def visitors_by_age(self) -> tuple[list[str], int]:
        """Return the visitors, those online at the latest view first, and the number of these."""
        begin = self.last - ONLINE
        online = [visitor for visitor, moment in self.visitors.items() if moment >= begin]
        before = [visitor for visitor, moment in self.visitors.items() if moment < begin]
        return online + before, len(online)


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


def identified(visitor: str) -> str:
    """Return the keyed hash that is stored for a visitor."""
    return hashed(f"visitor:{visitor}") if visitor else ""


def identity_kind(options: PageViewSettings) -> str:
    """Return the kind of identity that visitors have now: the setting, and a sign of the key that hashes them."""
    return f"{options.VISITOR} {hashed('kind of identity')[:6]}"


def _source(text: str) -> str:
    """Return the beginning of a text that anybody may have sent, as valid Unicode."""
    return text[:LONGEST_SOURCE].encode(errors="replace").decode()
