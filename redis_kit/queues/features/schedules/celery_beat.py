"""Takes the schedules of django-celery-beat over from its tables, whether the package is still installed or not."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from django.db import connection
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive

from redis_kit.core.errors import ConfigurationError, RedisKitError
from redis_kit.queues.errors import InvalidSchedule
from redis_kit.queues.features.schedules import control, inspection
from redis_kit.queues.models import Schedule
from redis_kit.queues.tasks import discovery, registry

PREFIX = "django_celery_beat_"
KINDS = ("interval", "crontab", "clocked", "solar")
CRON = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
NARROW = re.compile(r"(?<![\w-])(\w+)-\1/\d+")  # a range of one number with a step, which cron reads as an open range
Row = dict[str, Any]
Times = dict[tuple[str, Any], Row]  # by kind and id


class Entry(NamedTuple):
    """An entry of celery beat: the row that it becomes, None if it can't, and when that ticks.

    ``note`` says why it can't become one, or can't run.
    """

    name: str
    outcome: Literal["new", "exists", "unsupported"]
    row: Schedule | None
    when: str = ""
    note: str = ""


def entries() -> list[Entry]:
    """Return what each entry becomes. Writes nothing. Raises InvalidSchedule if there are no tables."""
    discovery.discover()
    tables = connection.introspection.table_names()
    if f"{PREFIX}periodictask" not in tables:
        raise InvalidSchedule("There is no table of django-celery-beat in the database 'default'.")
    kinds = [kind for kind in KINDS if f"{PREFIX}{kind}schedule" in tables]  # old releases lack some
    times = {(kind, row["id"]): row for kind in kinds for row in _read(f"{kind}schedule")}
    present = set(Schedule.objects.values_list("name", flat=True))
    return [_entry(task, times, present) for task in sorted(_read("periodictask"), key=lambda task: str(task["name"]))]


def _entry(task: Row, times: Times, present: set[str]) -> Entry:
    name = str(task["name"])
    try:
        row = Schedule(name=name, **_fields(task, times))
        when = inspection.when(control.made(row))
    except (InvalidSchedule, ConfigurationError, ValueError) as error:
        return Entry(name, "unsupported", None, note=str(error))
    if row.kind == Schedule.Kind.CELERY:
        when = f"Celery: {when}"
    if name in present:
        return Entry(name, "exists", row, when)
    try:
        control.check(row)
    except RedisKitError as error:
        return Entry(name, "new", row, when, f"can't run: {error}")
    return Entry(name, "new", row, when)


def _fields(task: Row, times: Times) -> Row:
    path = str(task["task"])
    return {
        "task": path,
        "kind": Schedule.Kind.TASK if registry.is_registered(path) else Schedule.Kind.CELERY,
        "args": _json(task, "args", "[]"),
        "kwargs": _json(task, "kwargs", "{}"),
        "queue": task.get("queue") or "",
        "start": _moment(task.get("start_time")),
        "end": _moment(task.get("expires")),
        "enabled": bool(task["enabled"]),
        **_when(task, times),
    }


def _json(task: Row, field: str, empty: str) -> Any:
    try:
        return json.loads(task[field] or empty)
    except ValueError as error:
        raise InvalidSchedule(f"{field} is not JSON: {error}", field) from error


def _when(task: Row, times: Times) -> Row:
    kind = next((kind for kind in KINDS if task.get(f"{kind}_id") is not None), "")
    if kind == "solar":
        raise InvalidSchedule("solar events are not supported")
    if not (when := times.get((kind, task.get(f"{kind}_id")))):
        raise InvalidSchedule("it has no time")
    if kind == "clocked":
        return {"at": _moment(when["clocked_time"])}
    if kind == "interval":
        if task.get("one_off"):
            raise InvalidSchedule("an interval that runs once is not supported: enqueue the task with run_after")
        return {"every": timedelta(**{when["period"]: when["every"]}).total_seconds()}
    parts = [str(when[field]).replace(" ", "") or "*" for field in CRON]
    if not any(parts[place].startswith("*") for place in (2, 4)):
        # Celery runs on days that match both; cron, and so does this, on days that match one of them.
        raise InvalidSchedule("a crontab with a day of the month and a day of the week means something else here")
    return {"cron": NARROW.sub(r"\1", " ".join(parts)), "timezone": str(when.get("timezone") or "UTC")}


def _moment(value: Any) -> datetime | None:
    moment = parse_datetime(value) if isinstance(value, str) else value
    return moment.replace(tzinfo=UTC) if isinstance(moment, datetime) and is_naive(moment) else moment


def _read(table: str) -> Iterator[Row]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {connection.ops.quote_name(PREFIX + table)}")  # noqa: S608 -- a constant
        columns = [column[0] for column in cursor.description or ()]
        for values in cursor.fetchall():
            yield dict(zip(columns, values, strict=True))
