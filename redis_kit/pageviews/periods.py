"""Days of the site: in Django's ``TIME_ZONE``, not the viewer's."""

import calendar
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta

from django.utils import timezone

from redis_kit.core import dates
from redis_kit.core.errors import InvalidValue

TRENDING_HALF_LIFE = 6 * 3600.0  # seconds after which a view counts half among the pages that trend


def now() -> datetime:
    """Return the current time in the site's time zone."""
    return datetime.now(timezone.get_default_timezone())


def local(moment: datetime | None) -> datetime:
    """Return a time in the site's time zone; now for None.

    Raises InvalidValue for one without a time zone if ``USE_TZ`` is on, and for a day in the future.
    """
    if moment is None:
        return now()
    moment = dates.aware("at", moment)
    present = now()
    if moment >= datetime.combine(present + timedelta(1), time.min, present.tzinfo):
        raise InvalidValue(f"at is {moment}; it must not be after {present.date()}, which is today.")
    return moment.astimezone(present.tzinfo)


def checked(name: str, day: date | None) -> date:
    """Return a day; today for None. Raises InvalidValue unless it is a date and no datetime."""
    return now().date() if day is None else dates.checked(name, day)


def days(start: date | None, end: date | None) -> list[date]:
    """Return the days from start to end, both included. The end defaults to today, the start to the end.
    Raises InvalidValue unless these are 1 to 366 days.
    """
    first = None if start is None else checked("start", start)
    last = checked("end", end)
    return dates.between(last if first is None else first, last)


def months(wanted: list[date]) -> dict[str, list[date]]:
    """Return the days by month, such as ``2026-11``."""
    by_month: dict[str, list[date]] = {}
    for day in wanted:
        by_month.setdefault(month_of(day), []).append(day)
    return by_month


def period_of(day: date, kind: str) -> str:
    """Return the day, week or month that a day is in. Raises InvalidValue for another kind of period."""
    makers = {"day": date.isoformat, "week": week_of, "month": month_of}
    if kind not in makers:
        raise InvalidValue(f"period is {kind!r}; it must be day, week or month.")
    return makers[kind](day)


def month_of(day: date) -> str:
    """Return the month of a day, such as ``2026-11``."""
    return f"{day:%Y-%m}"


def week_of(day: date) -> str:
    """Return the week of a day by ISO 8601, such as ``2026-W47``: Monday to Sunday."""
    return f"{day:%G-W%V}"


def minute_of(moment: datetime) -> str:
    """Return the minute of a time in UTC, such as ``2026-11-22T13:05Z``: a clock that goes back repeats no minute."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%MZ}"


def sketches(wanted: list[date]) -> list[str]:
    """Return the periods whose sketches cover the days of a range: whole months, then whole weeks, then single days.

    A week may reach into a month that is there too: a union counts nobody twice. Any 90 days take at most 16.
    """
    months_inside = [
        month
        for month, part in months(wanted).items()
        if len(part) == calendar.monthrange(part[0].year, part[0].month)[1]
    ]
    left = [day for day in wanted if month_of(day) not in months_inside]
    in_weeks = Counter(map(week_of, wanted))
    periods = [week_of(day) if in_weeks[week_of(day)] == 7 else day.isoformat() for day in left]
    return [*months_inside, *dict.fromkeys(periods)]
