"""When a schedule ticks, in plain words."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from redis_kit.core.text import whole_units
from redis_kit.queues.features.schedules.definition import Definition

DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
STEP = re.compile(r"\*/(\d+)")


def when(definition: Definition) -> str:
    """Return when a schedule ticks, such as "every day at 04:00 Europe/Berlin"."""
    if definition.every:
        return _("every %(time)s") % {"time": whole_units(definition.every / 1000)}
    if definition.cron:
        return f"{_cron(definition.cron)} {definition.zone}"
    return _("once at %(time)s") % {"time": moment(definition.at, definition.zone)}


def moment(ms: int, zone: str) -> str:
    """Return a moment in a time zone, to the second."""
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S")


def _cron(expression: str) -> str:
    minute, hour, day, month, weekday = expression.upper().split()
    if month == "*" and minute.isdecimal() and hour.isdecimal():
        time = f"{int(hour):02}:{int(minute):02}"
        if (day, weekday) == ("*", "*"):
            return _("every day at %(time)s") % {"time": time}
        if day == "*" and (names := _weekdays(weekday)):
            return _("on %(days)s at %(time)s") % {"days": names, "time": time}
        if weekday == "*" and day.isdecimal():
            return _("on day %(day)s of each month at %(time)s") % {"day": day, "time": time}
        if (day, weekday) == ("L", "*"):
            return _("on the last day of each month at %(time)s") % {"time": time}
    if (day, month, weekday) == ("*", "*", "*") and hour == "*":
        if minute.isdecimal():
            return _("every hour at minute %(minute)s") % {"minute": minute}
        if minute == "*":
            return _("every minute")
        if (step := STEP.fullmatch(minute)) and 60 % int(step[1]) == 0:
            count = int(step[1])
            return ngettext("every %(count)d minute", "every %(count)d minutes", count) % {"count": count}
    return _("cron %(expression)s") % {"expression": expression}


def _weekdays(field: str) -> str:
    """Return the names of weekdays; "" for a field that has more than days and ranges of days."""
    ranges: list[str] = []
    for part in field.split(","):
        ends = [str(WEEKDAYS[(day - 1) % 7]) for each in part.split("-") if (day := _weekday(each)) is not None]
        if len(ends) != part.count("-") + 1:
            return ""
        ranges.append("–".join(ends))
    return ", ".join(ranges)


def _weekday(name: str) -> int | None:
    return DAYS.index(name) if name in DAYS else int(name) if name.isdecimal() else None
