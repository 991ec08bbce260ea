"""The decorator: what it registers, and what it refuses at import."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from redis_kit.core.errors import ConfigurationError
from redis_kit.queues import InvalidSchedule, periodic, task
from redis_kit.queues.features.schedules import definition
from redis_kit.queues.features.schedules import periodic as declarations


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """No schedule of another test."""
    found = {}
    monkeypatch.setattr(declarations, "_declared", found)
    return found


@task
def report(number: int = 1, *, name: str = "") -> int:
    return number


def test_task_is_registered_under_its_name_and_stays_the_same(declared):
    assert periodic(every=5)(report) is report
    assert declarations.all_declared() == {report.module_path: f'{{"every":5000,"task":"{report.module_path}"}}'}
    assert definition.loaded(report.module_path, declarations.all_declared()[report.module_path]).every == 5000


def test_task_may_have_several_schedules(declared, settings):
    settings.TIME_ZONE = "Asia/Tokyo"
    periodic(cron="0 4 * * *")(periodic(every=timedelta(minutes=1), args=[7])(report))
    periodic(every=1.5, name="often", jitter=1, overlap="allow", catch_up=3, kwargs={"name": "é"})(report)
    found = {name: definition.loaded(name, stored) for name, stored in declarations.all_declared().items()}
    path = report.module_path
    assert list(found) == ["often", path, f"{path} 0 4 * * *"]
    assert (found[path].every, found[path].args) == (60_000, [7])
    assert (found[f"{path} 0 4 * * *"].cron, found[f"{path} 0 4 * * *"].timezone) == ("0 4 * * *", "Asia/Tokyo")
    assert found["often"].kwargs == {"name": "é"}
    assert (found["often"].jitter, found["often"].overlap, found["often"].catch_up) == (1000, "allow", 3)


def test_policy_that_needs_the_end_of_a_job_is_refused_for_tasks_of_celery(declared):
    celery = SimpleNamespace(name="shop.report", apply_async=print, run=print)
    for policy in ("skip", "queue_one"):
        with pytest.raises(InvalidSchedule, match=f"overlap='{policy}' needs to know when a job ends, and shop.report"):
            periodic(every=5, overlap=policy)(celery)
    periodic(every=5, overlap="allow", name="a")(celery)
    periodic(every=5, name="b")(celery)
    assert list(declared) == ["a", "b"]


def test_decorator_without_parentheses_is_an_error(declared):
    with pytest.raises(InvalidSchedule, match=r"@periodic needs a time: write @periodic\(every=5\)"):
        periodic(report)
    assert declared == {}


def test_version_tells_one_set_of_schedules_from_another(declared):
    assert declarations.version(declarations.all_declared()) == ""
    periodic(every=5)(report)
    first = declarations.version(declarations.all_declared())
    periodic(every=6)(report)
    assert len({first, declarations.version(declarations.all_declared())}) == 2


def test_module_that_is_loaded_again_replaces_its_schedules(declared):
    periodic(every=5)(report)
    again = task(type(report.func)(report.func.__code__, report.func.__globals__, "report", report.func.__defaults__))
    again.func.__qualname__, again.func.__kwdefaults__ = "report", {"name": ""}
    periodic(every=9)(again)
    assert [definition.every for definition, _ in declared.values()] == [9000]


def test_name_of_another_schedule_is_refused(declared):
    periodic(every=5, name="x")(report)
    with pytest.raises(InvalidSchedule, match=r"'x' is that of another schedule.*Give this one another name="):
        periodic(every=5, name="x")(report)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs one of every and cron, but it has no time"),
        ({"every": 5, "cron": "* * * * *"}, "every and cron exclude each other"),
        ({"every": 5, "enabled": "no"}, "enabled must be True or False, not 'no'"),
        ({"every": 0}, r"every must be 0\.1 to 31,622,400 seconds, as a number or a timedelta, not 0"),
        ({"every": -1}, "every must be"),
        ({"every": True}, "every must be"),
        ({"every": "5"}, "every must be"),
        ({"every": float("nan")}, "every must be"),
        ({"cron": "61 * * * *"}, r"'61 \* \* \* \*': Bad minute\. cron has five fields"),
        ({"cron": "* * *"}, "five fields"),
        ({"cron": "0 4 * * * *"}, r"'0 4 \* \* \* \*', which has 6 fields\. cron has five fields"),
        ({"cron": 5}, "cron must be text"),
        ({"cron": "0 4 * * *", "timezone": "Europe/Berln"}, "Did you mean 'Europe/Berlin'"),
        ({"every": 5, "timezone": "UTC"}, "timezone belongs to cron"),
        ({"every": 5, "overlap": "sometimes"}, "overlap must be one of skip, queue_one, allow"),
        ({"every": 5, "catch_up": "all"}, "catch_up must be 'none', 'last' or a whole number up to 100"),
        ({"every": 5, "catch_up": 101}, "catch_up must be"),
        ({"every": 5, "jitter": 5}, "jitter must be shorter than every"),
        ({"every": 5, "jitter": -1}, "jitter must be 0 to"),
        ({"cron": "* * * * *", "jitter": 600}, "shorter than the shortest time between two ticks, 60 s, or ticks"),
        ({"cron": "50,10 23,0 * * *", "jitter": 1200}, "two ticks, 1,200 s"),
        ({"cron": "0 0,12 1,31 * *", "jitter": 43_200}, "two ticks, 43,200 s"),
        ({"every": 5, "name": ""}, "name must be text of 1 to 200"),
        ({"every": 5, "name": "a\nb"}, "name must be"),
        ({"every": 5, "args": "ab"}, "args must be a list"),
        ({"every": 5, "args": [object()]}, r"args\[0\] is .* which JSON can't hold"),
        ({"every": 5, "kwargs": [1]}, "kwargs must be a dict"),
        ({"every": 5, "args": [1, 2]}, "can't be called like that: too many positional arguments"),
        ({"every": 5, "start": datetime(2026, 1, 1)}, "start is .* without a time zone"),
        (
            {"every": 5, "start": datetime(2026, 1, 2, tzinfo=UTC), "end": datetime(2026, 1, 1, tzinfo=UTC)},
            "end must be later",
        ),
        ({"every": 5, "start": "2026-01-01"}, "start must be a datetime"),
    ],
)
def test_wrong_argument_is_refused_at_import(given, said, declared):
    with pytest.raises(InvalidSchedule, match=said):
        periodic(**given)(report)
    assert not declared


def test_function_that_is_not_a_task_is_refused():
    with pytest.raises(InvalidSchedule, match=r"test_function.* is not a task\. Write @periodic\(\.\.\.\) above @task"):
        periodic(every=5)(test_function_that_is_not_a_task_is_refused)


def test_task_of_celery_is_registered_by_its_name(declared):
    foreign = SimpleNamespace(name="shop.report", apply_async=print, run=print)
    periodic(every=5)(foreign)
    schedule, _ = declared["shop.report"]
    assert (schedule.kind, schedule.task) == ("celery", "shop.report")


def test_cron_without_its_package_is_an_error_at_import(monkeypatch, declared):
    monkeypatch.setitem(__import__("sys").modules, "cronsim", None)
    with pytest.raises(ConfigurationError, match=r"needs the package cronsim: pip install 'django-redis-kit\[cron\]'"):
        periodic(cron="1 2 3 4 5")(report)
    periodic(every=5, name="fine")(report)
    assert list(declared) == ["fine"]


def test_rows_override_code_and_fields_of_a_newer_release_are_refused():
    with pytest.raises(InvalidSchedule, match="has colour, which this release does not know"):
        definition.loaded("x", '{"task": "t", "every": 5, "colour": 1}')
    with pytest.raises(InvalidSchedule, match="names no task"):
        definition.loaded("x", "", '{"enabled": false}')
    with pytest.raises(InvalidSchedule, match="jitter must be shorter than the shortest time between two ticks"):
        definition.loaded("x", '{"task": "t", "cron": "*/5 * * * *", "timezone": "UTC"}', '{"jitter": 300000}')
    merged = definition.loaded("x", '{"task": "t", "cron": "* * * * *", "timezone": "UTC"}', '{"every": 5000}')
    assert (merged.every, merged.cron, merged.timezone, merged.task) == (5000, "", "", "t")
