"""The admin of schedules: what its form refuses, and what workers learn of what was saved."""

import pytest

from redis_kit.queues.features.schedules import control
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
    (info,) = control.listed().schedules
    assert (info.name, info.source, info.definition.args, info.problem) == ("report", "database", [1], "")
    assert info.due is not None
    found = page(boss.get(LIST))
    assert any(each.words == "every day at 04:00 Europe/Berlin" for each in found.find("td"))


def test_empty_arguments_are_shown_empty(kit, boss):
    shown = page(boss.get(ADD))
    assert {each.attributes["name"]: each.words for each in shown.find("textarea")} == {"args": "", "kwargs": ""}


def test_empty_choice_of_the_overlap_says_what_it_means(kit, boss):
    assert "as in the code" in [each.words for each in page(boss.get(ADD)).find("option")]


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({}, "every", "has no time. It needs one of every, cron and at"),
        ({"every": "5", "cron": "* * * * *"}, "every", "exclude each other"),
        ({"every": "0"}, "every", "every must be 0.1 to"),
        ({"cron": "61 * * * *"}, "cron", "cron has five fields"),
        ({"cron": "0 4 * * *", "timezone": "Berlin"}, "timezone", "is not the name of a time zone"),
        ({"every": "5", "task": "shop.nope"}, "task", "unknown task"),
        ({"every": "5", "task": ""}, "task", "names no task"),
        ({"every": "5", "args": "[1, 2, 3]"}, "task", "arguments do not fit"),
        ({"every": "5", "args": '{"a": 1}'}, "args", "args must be a list"),
        ({"every": "5", "kwargs": "[1]"}, "kwargs", "kwargs must be a dict"),
        ({"every": "5", "args": "not json"}, "args", "valid JSON"),
        ({"every": "5", "jitter": "9"}, "jitter", "jitter must be shorter than every"),
        ({"every": "5", "catch_up": "101"}, "catch_up", "catch_up must be"),
        ({"every": "5", "queue": "x" * 513}, "queue", "at most 200 characters"),
    ],
)
def test_wrong_field_is_refused_with_the_reason_beside_it(kit, boss, given, field, said):
    found = errors(boss, **given)
    assert said in found[field]
    assert not Schedule.objects.exists()


def test_missing_package_for_cron_is_named(kit, boss, monkeypatch):
    from redis_kit.queues.features.schedules import cron

    cron.check.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "cronsim", None)
    assert "django-redis-kit[cron]" in errors(boss, cron="1 2 3 4 5")["cron"]


def test_task_of_celery_needs_celery(kit, boss, monkeypatch):
    monkeypatch.setattr("redis_kit.queues.engine.feature.features", tuple)
    assert "needs Celery" in errors(boss, kind="celery", task="any.name", every="5")["kind"]
