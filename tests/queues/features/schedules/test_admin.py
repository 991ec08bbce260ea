"""The admin of schedules: what its form refuses, and what workers learn of what was saved."""

from datetime import UTC, datetime

import pytest

from redis_kit.queues.features.schedules import inspection
from redis_kit.queues.models import Schedule
from tests.dashboard.support.html import page
from tests.queues.support.scheduled import scheduler, tick
from tests.queues.support.tasks import remember

ADD = "/admin/redis_kit/schedule/add/"
LIST = "/admin/redis_kit/schedule/"
TASK = remember.module_path


def entered(**given):
    return {"name": "report", "task": TASK, "kind": "task", "args": "[1]", "enabled": "on", **given}


def errors(client, **given):
    response = client.post(ADD, entered(**given))
    form = response.context["adminform"].form
    return {field: " ".join(map(str, texts)) for field, texts in form.errors.items()}


def test_valid_schedule_is_saved_and_ticks(kit, boss, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        assert boss.post(ADD, entered(cron="0 4 * * *", timezone="Europe/Berlin")).status_code == 302
    tick(scheduler())
    (info,) = inspection.listed().schedules
    assert (info.name, info.source, info.definition.args, info.problem) == ("report", "database", [1], "")
    assert info.due is not None
    assert any(each.words == "0 4 * * *" for each in page(boss.get(LIST)).find("td"))


def test_empty_arguments_are_shown_empty(kit, boss):
    shown = page(boss.get(ADD))
    assert {each.attributes["name"]: each.words for each in shown.find("textarea")} == {"args": "", "kwargs": ""}


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({}, "every", "Fill in one of these"),
        ({"every": "5", "cron": "* * * * *"}, "every", "Fill in one of these"),
        ({"every": "0"}, "every", "seconds from 0.1 to"),
        ({"cron": "61 * * * *"}, "cron", "cron has five fields"),
        ({"cron": "0 4 * * *", "timezone": "Berlin"}, "timezone", "is not the name of a time zone"),
        ({"every": "5", "task": "shop.nope"}, "task", "unknown task"),
        ({"every": "5", "task": ""}, "task", "names no task"),
        ({"every": "5", "args": "[1, 2, 3]"}, "args", "arguments do not fit"),
        ({"every": "5", "args": '{"a": 1}'}, "args", "args must be a list"),
        ({"every": "5", "kwargs": "[1]"}, "kwargs", "kwargs must be a dict"),
        ({"every": "5", "args": "not json"}, "args", "valid JSON"),
        ({"every": "5", "args": r'["\ud800"]'}, "args", "halves of surrogate pairs"),
        ({"every": "5", "args": r'["\\\u0000"]'}, "args", "halves of surrogate pairs"),
        ({"every": "5", "kwargs": r'{"\u0000": 1}'}, "kwargs", "halves of surrogate pairs"),
        ({"every": "5", "jitter": "9"}, "jitter", "less than the time between two ticks"),
        ({"every": "5", "catch_up": "101"}, "catch_up", "from 0 to 100"),
        ({"at_0": "2020-02-20", "at_1": "20:20"}, "at", "This time has passed."),
        (
            {"every": "5", "start_0": "2020-02-20", "start_1": "1:00", "end_0": "2020-02-19", "end_1": "1:00"},
            "end",
            "later",
        ),
        ({"every": "5", "queue": "x" * 513}, "queue", "at most 200 characters"),
        ({"every": "5", "queue": "x" * 100}, "queue", "for the ids of its jobs"),
        ({"every": "5", "queue": "mail#02"}, "queue", "is the name of a shard of the queue 'mail'"),
    ],
)
def test_wrong_field_is_refused_with_the_reason_beside_it(kit, boss, given, field, said):
    found = errors(boss, **given)
    assert said in found[field]
    assert not Schedule.objects.exists()


def test_text_that_looks_like_an_escape_is_saved(kit, boss):
    assert boss.post(ADD, entered(every="5", args=r'["\\u0000"]')).status_code == 302
    assert Schedule.objects.get().args == [r"\u0000"]


def test_row_that_has_run_can_be_changed(kit, boss):
    row = Schedule.objects.create(name="report", task=TASK, at=datetime(2020, 2, 20, 20, 20, 20, tzinfo=UTC), args=[1])
    change = f"/admin/redis_kit/schedule/{row.pk}/change/"
    given = entered(at_0="2020-02-20", at_1="20:20:20", args="[2]")
    assert boss.post(change, given).status_code == 302
    assert boss.post(change, given | {"at_1": "20:20:21"}).status_code == 200


def test_missing_package_for_cron_is_named(kit, boss, monkeypatch):
    from redis_kit.queues.features.schedules import cron

    cron.check.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "cronsim", None)
    assert "django-redis-kit[cron]" in errors(boss, cron="1 2 3 4 5")["cron"]


def test_task_of_celery_needs_celery(kit, boss, monkeypatch):
    monkeypatch.setattr("redis_kit.queues.engine.feature.features", tuple)
    assert "needs Celery" in errors(boss, kind="celery", task="any.name", every="5")["kind"]
