"""The schedules of django-celery-beat are taken over from tables with the columns of its release 2.8."""

import json
import re
from datetime import UTC, datetime
from itertools import count

import pytest
from django.db import connection

from redis_kit.queues.features.schedules import celery_beat, inspection
from redis_kit.queues.models import Schedule
from tests.queues.support.scheduled import scheduler, tick
from tests.queues.support.tasks import remember

pytestmark = pytest.mark.django_db(transaction=True)  # MariaDB commits with each new table
TASK = remember.module_path
TABLES = """
CREATE TABLE django_celery_beat_intervalschedule (id integer PRIMARY KEY, every integer, period varchar(24));
CREATE TABLE django_celery_beat_clockedschedule (id integer PRIMARY KEY, clocked_time datetime);
CREATE TABLE django_celery_beat_solarschedule (
    id integer PRIMARY KEY, event varchar(24), latitude decimal, longitude decimal
);
CREATE TABLE django_celery_beat_crontabschedule (
    id integer PRIMARY KEY, minute varchar(240), hour varchar(96), day_of_week varchar(64), day_of_month varchar(124),
    month_of_year varchar(64), timezone varchar(63)
);
CREATE TABLE django_celery_beat_periodictask (
    id integer PRIMARY KEY, name varchar(200), task varchar(200), args text, kwargs text, queue varchar(200),
    exchange varchar(200), routing_key varchar(200), headers text, priority integer, expires datetime,
    expire_seconds integer, one_off bool, start_time datetime, enabled bool, last_run_at datetime,
    total_run_count integer, date_changed datetime, description text,
    crontab_id integer, interval_id integer, solar_id integer, clocked_id integer
);
INSERT INTO django_celery_beat_intervalschedule VALUES (1, 10, 'minutes'), (2, 50, 'microseconds');
INSERT INTO django_celery_beat_clockedschedule VALUES (1, '2130-01-02 03:04:05'), (2, '2019-01-02 03:04:05');
INSERT INTO django_celery_beat_solarschedule VALUES (1, 'sunrise', 52.5, 13.4);
INSERT INTO django_celery_beat_crontabschedule VALUES
    (1, '0', '4', '*', '*', '*', 'Europe/Berlin'), (2, '*/15', '8-17', 'mon-fri', '*', '*', 'UTC'),
    (3, '0', '4', '1', '13', '*', 'UTC'), (4, '1,6-6/4', '4', '*', '*', '*', 'UTC'),
    (5, '6-16/4,16-16', '4', '*', '*', '*', 'UTC');
"""


@pytest.fixture
def beat(kit):
    """The tables, and a function that adds an entry."""
    with connection.cursor() as cursor:
        moment = "timestamp with time zone" if connection.vendor == "postgresql" else "datetime"
        for statement in TABLES.replace("datetime", moment).strip().split(";\n"):
            cursor.execute(statement.rstrip(";"))
    ids = count(1)

    def add(name, **given):
        stored = {"id": next(ids), "name": name, "task": TASK, "args": "[1]", "kwargs": "{}", "headers": "{}"}
        values = {**stored, "enabled": True, "one_off": False, **given}
        with connection.cursor() as cursor:
            marks = ", ".join(["%s"] * len(values))
            insert = f"INSERT INTO django_celery_beat_periodictask ({', '.join(values)}) VALUES ({marks})"  # noqa: S608
            cursor.execute(insert, [*values.values()])

    yield add
    with connection.cursor() as cursor:
        for table in re.findall(r"TABLE (\w+)", TABLES):
            cursor.execute(f"DROP TABLE {table}")


def test_entries_become_rows_and_a_second_import_changes_nothing(beat, shell):
    beat("interval", interval_id=1, queue="mail")
    beat("nightly", crontab_id=1, enabled=False)
    beat("office", crontab_id=2, task="shop.of_celery", kwargs='{"a": 1}', priority=5)
    beat("clocked", clocked_id=1, one_off=True)
    code, said, _ = shell("rk_schedule", "import", "--dry-run")
    assert (code, Schedule.objects.count()) == (0, 0)
    assert "Would import: 4." in said
    assert "Imported: 4." in shell("rk_schedule", "import")[1]
    found = {row.name: row for row in Schedule.objects.all()}
    assert (found["interval"].every, found["interval"].queue, found["interval"].kind) == (600, "mail", "task")
    nightly = found["nightly"]
    assert (nightly.cron, nightly.timezone, nightly.enabled) == ("0 4 * * *", "Europe/Berlin", False)
    assert (found["office"].kind, found["office"].cron) == ("celery", "*/15 8-17 * * mon-fri")
    assert (found["office"].args, found["office"].kwargs) == ([1], {"a": 1})
    assert found["clocked"].at == datetime(2130, 1, 2, 3, 4, 5, tzinfo=UTC)
    tick(scheduler())
    assert {info.name: info.paused for info in inspection.listed().schedules} == {
        **dict.fromkeys(found, False),
        "nightly": True,
    }
    again = json.loads(shell("rk_schedule", "import", "--json")[1])
    assert again["imported"] == 0
    assert {each["outcome"] for each in again["entries"]} == {"exists"}


def test_range_of_one_number_with_a_step_is_that_number(beat):
    for id in (4, 5):
        beat(f"entry{id}", crontab_id=id)
    assert [entry.row.cron for entry in celery_beat.entries()] == ["1,6 4 * * *", "6-16/4,16-16 4 * * *"]


def test_entry_that_could_not_run_is_named_with_its_reason(beat):
    beat("unfit", interval_id=1, args="[1, 2, 3]", enabled=False)
    (entry,) = celery_beat.entries()
    assert entry.outcome == "new"
    assert entry.note.startswith(f"can't run: arguments do not fit {TASK}(")


def test_expires_is_the_end(beat):
    beat("old", interval_id=1, expires="2020-01-02 03:04:05", expire_seconds=5)
    (entry,) = celery_beat.entries()
    assert (entry.outcome, entry.note, entry.row.end.year) == ("new", "", 2020)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"solar_id": 1}, "solar events are not supported"),
        ({"crontab_id": 3}, "means something else here"),
        ({"interval_id": 2}, "every must be 0.1 to"),
        ({"interval_id": 1, "one_off": True}, "an interval that runs once is not supported"),
        ({}, "it has no time"),
        ({"interval_id": 9}, "it has no time"),
        ({"interval_id": 1, "args": "[1,"}, "args is not JSON: Expecting value"),
        ({"interval_id": 1, "kwargs": "{"}, "kwargs is not JSON: Expecting property name"),
    ],
)
def test_what_can_not_be_taken_over_is_named_with_its_reason(beat, given, said):
    beat("odd", **given)
    (entry,) = celery_beat.entries()
    assert (entry.outcome, entry.row) == ("unsupported", None)
    assert said in entry.note


def test_schedule_of_the_same_name_is_left_alone(beat, shell):
    Schedule.objects.create(name="interval", task=TASK, every=5)
    beat("interval", interval_id=1)
    (entry,) = celery_beat.entries()
    assert entry.outcome == "exists"
    assert "Imported: 0." in shell("rk_schedule", "import")[1]


def test_project_without_the_tables_is_told(kit, shell):
    code, _, errors = shell("rk_schedule", "import")
    assert code == 1
    assert "There is no table of django-celery-beat" in errors
