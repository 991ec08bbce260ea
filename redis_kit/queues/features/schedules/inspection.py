"""What people see of schedules: a page of them, their next ticks and latest jobs, and their times in plain words."""

import heapq
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Literal
from zoneinfo import ZoneInfo

from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from redis_kit.core.errors import ConfigurationError, RedisFailure
from redis_kit.core.flow import single
from redis_kit.core.steps import Batch
from redis_kit.core.text import whole_units
from redis_kit.queues.engine import feature, ids
from redis_kit.queues.features.schedules import store
from redis_kit.queues.features.schedules.definition import LATE, Definition
from redis_kit.queues.features.schedules.store import SCHEDULES, Page, StoredSchedule
from redis_kit.queues.queue import Queue

DAY = 86_400_000  # ms
PAGE = 100
MOST = 10_000
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
WEEK = re.compile(r"[0-7](-[0-7])?(,[0-7](-[0-7])?)*")
STEP = re.compile(r"\*/(\d+)")


def listed(
    order: Literal["due", "names"] = "names", *, offset: int = 0, limit: int = PAGE, beginning: str = ""
) -> Page:
    """Return schedules, by name or the next ones; by name also those whose names begin with a text. One round trip."""
    page: Page = SCHEDULES.run_flow(store.page(order, offset, limit, beginning=beginning))
    return page


def all_schedules() -> Page:
    """Return all schedules by name, 10,000 at most. One round trip for 100."""
    page = listed()
    for offset in range(PAGE, min(page.total, MOST), PAGE):
        page.schedules.extend(listed(offset=offset).schedules)
    return page


def next_ticks(page: Page, count: int, *, each: int | None = None) -> list[tuple[int, StoredSchedule]]:
    """Return the next ticks within a day: at most ``count``, given as many of the next schedules; ``each`` of one."""
    ticks = [_ticks(schedule, page.now, each or count) for schedule in page.schedules]
    return list(islice(heapq.merge(*ticks, key=lambda pair: pair[0]), count))


def outcomes(schedules: Iterable[StoredSchedule]) -> dict[str, str]:
    """Return the status of the latest job of each schedule, as far as it is known. One round trip."""
    jobs = {each.name: each.state for each in schedules if each.state.job and each.state.queue}
    if not feature.has("result_step") or not jobs:
        return {}
    step = feature.provided("result_step")
    queues = [Queue(ids.part_of(each.queue, each.job) or each.queue) for each in jobs.values()]
    steps = [step(queue.key(""), each.job) for queue, each in zip(queues, jobs.values(), strict=True)]
    replies = SCHEDULES.run_flow(single(Batch(steps, lenient=True)))
    each = zip(jobs, replies, strict=True)
    return {name: reply[0].decode() for name, reply in each if not isinstance(reply, RedisFailure)}


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
    for number, name in enumerate(DAYS):
        field = field.replace(name, str(number))
    if not WEEK.fullmatch(field):
        return ""
    text = field.replace("-", "–").replace(",", ", ")
    return re.sub(r"\d", lambda day: str(WEEKDAYS[(int(day[0]) - 1) % 7]), text)


def _ticks(schedule: StoredSchedule, now: int, count: int) -> Iterator[tuple[int, StoredSchedule]]:
    if schedule.definition and schedule.due is not None and schedule.state.next is not None:
        try:
            for tick in schedule.definition.upcoming(max(schedule.state.next - 1, now - LATE), now + DAY, count):
                yield tick, schedule
        except ConfigurationError:  # workers have the package of cron, and this process has not
            yield schedule.due, schedule
