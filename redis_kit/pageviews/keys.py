"""The keys of page views. ``name`` is the encoded name of a page, of an object, or of the site."""

from datetime import date
from typing import NamedTuple

from redis_kit.core import conf
from redis_kit.core.settings import KitSettings


class HourKeys(NamedTuple):
    """The keys in which one hour of a page, an object or the site is counted, in the order of the script."""

    batch: str
    hours: str
    days: str
    hourly_visitors: str
    daily_visitors: str
    monthly_visitors: str
    top: str


def hour_keys(name: str, hour: str, *, writer: str) -> HourKeys:
    """Return the keys of an hour, such as ``2026-11-22T13``."""
    day, month = hour[:10], hour[:7]
    return HourKeys(
        batch=_key(name, f"batch:{writer}:{hour}"),
        hours=views(name, day),
        days=views(name, month),
        hourly_visitors=visitors(name, hour),
        daily_visitors=visitors(name, day),
        monthly_visitors=visitors(name, month),
        top=top(name, day),
    )


def views(name: str, period: str | date) -> str:
    """Return the hash with the views of a day by hour, or of a month by day."""
    return _key(name, f"views:{period}")


def visitors(name: str, period: str | date) -> str:
    """Return the HyperLogLog of an hour, a day or a month."""
    return _key(name, f"visitors:{period}")


def top(name: str, day: str | date) -> str:
    """Return the sorted set of a day's most viewed pages or objects."""
    return _key(name, f"top:{day}")


def pages(site: str, day: str) -> str:
    """Return the set of the pages and objects that are counted by name on a day."""
    return _key(site, f"pages:{day}")


def _key(name: str, part: str) -> str:
    return f"{conf.section(KitSettings).PREFIX}:{{pageviews:{name}}}:{part}"
