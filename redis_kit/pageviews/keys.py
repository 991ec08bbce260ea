"""The keys of page views. ``name`` is the encoded name of a page, of an object, or of the site."""

from datetime import date, datetime

from redis_kit.core import conf
from redis_kit.core.settings import KitSettings
from redis_kit.pageviews import periods

BOTS, DROPPED = "b", "d"  # before the day of the month, in the hash of a month's views


def hour_keys(name: str, last: datetime) -> list[str]:
    """Return the keys in which the hour of a time is counted, in the order of the script; the minute is that time's."""
    day, hour = last.date(), f"{last:%Y-%m-%dT%H}"
    week, month = periods.week_of(day), periods.month_of(day)
    sketches = (periods.minute_of(last), hour, day, week, month)
    return [
        _key(name, f"batches:{hour}"),
        views(name, day),
        views(name, month),
        *(visitors(name, period) for period in sketches),
        *(top(name, period) for period in (day, week, month)),
        trending(name),
        referrers(name, day),
        campaigns(name, day),
    ]


def views(name: str, period: str | date) -> str:
    """Return the hash with the views of a day by hour, or of a month by day."""
    return _key(name, f"views:{period}")


def visitors(name: str, period: str | date) -> str:
    """Return the HyperLogLog of a minute, an hour, a day, a week or a month."""
    return _key(name, f"visitors:{period}")


def union(name: str) -> str:
    """Return the key in which a script merges sketches while it runs."""
    return _key(name, "union")


def top(name: str, period: str | date) -> str:
    """Return the sorted set of the pages or objects of a day, a week or a month, by views."""
    return _key(name, f"top:{period}")


def trending(name: str) -> str:
    """Return the sorted set of pages or objects by views that lose weight with time."""
    return _key(name, "trending")


def referrers(name: str, day: date) -> str:
    """Return the sorted set of the hosts that a day's visitors came from."""
    return _key(name, f"referrers:{day}")


def campaigns(name: str, day: date) -> str:
    """Return the sorted set of a day's campaigns."""
    return _key(name, f"campaigns:{day}")


def pages(site: str, day: str) -> str:
    """Return the set of the pages and objects that are counted by name on a day."""
    return _key(site, f"pages:{day}")


def identities(site: str, month: str) -> str:
    """Return the set of the kinds of identities that the sketches of a month's days hold."""
    return _key(site, f"identities:{month}")


def _key(name: str, part: str) -> str:
    return f"{conf.section(KitSettings).PREFIX}:{{pageviews:{name}}}:{part}"
