"""Schedules whose tasks are Celery's: workers of the kit take the place of celery beat."""

import json

from redis_kit.core.errors import ConfigurationError
from redis_kit.queues import Queue
from redis_kit.queues.features.celery import broker
from redis_kit.testing.jobs import drain
from tests.fixtures.process import wait_for
from tests.queues.support import fleet
from tests.queues.support.scheduled import declared, due_now, scheduler, states, tick


def test_tick_is_sent_once_under_the_name_of_the_task(project, kit):
    broker._forget()
    declared("not.known.here", "report", kind="celery", every=3600, args=[1], kwargs={"a": 2}, queue="reports")
    worker = scheduler()
    tick(worker)
    due_now(kit, "report")
    tick(worker)
    assert states()["report"].runs == 1
    assert drain() == 1
    (message,) = project.sent("reports")
    assert (message.headers["task"], message.args, message.kwargs) == ("not.known.here", [1], {"a": 2})
    assert message.headers["id"] == states()["report"].job
    assert Queue("default").counts()[:3] == (0, 0, 0)


def test_change_of_settings_closes_connections_to_the_broker(project, kit):
    broker._forget()
    broker.send_tick("not.known.here", [], {}, id="1", queue="reports")
    (link,) = broker._schedule_publisher()._free
    assert link.connection.connected
    kit.options(QUEUES={})
    assert not link.connection.connected
    assert not broker._schedule_publisher()._free


def test_tick_waits_for_a_broker_that_is_away(project, kit):
    broker._forget()
    fleet.connect("redis://127.0.0.1:1/0")
    declared(fleet.plain.name, "report", kind="celery", every=3600, args=["x"])
    worker = scheduler()
    tick(worker)
    due_now(kit, "report")
    tick(worker)
    drain()
    assert Queue("default").counts()[:3] == (1, 0, 0)  # for another attempt
    fleet.connect(project.broker)
    broker._forget()
    (job,) = Queue("default").peek(state="scheduled")
    Queue("default").run_now(job.id)
    assert drain() == 1
    assert len(project.sent()) == 1


def test_worker_of_celery_runs_what_a_running_worker_ticks(project, journal, monkeypatch):
    given = [{"every": 0.5, "name": "report", "args": ["x"]}]
    monkeypatch.setenv("MORE_APPS", "tests.queues.support.beats")
    monkeypatch.setenv("SCHEDULES_OF_CELERY", json.dumps(given))
    project.start_celery()
    project.start_worker()
    wait_for(lambda: journal.names("ran").count("x") >= 2, timeout=30)


def test_process_without_an_app_says_how_to_name_it(kit, monkeypatch):
    monkeypatch.setattr(broker, "project_app", _missing)
    broker._forget()
    declared("a.task", "report", kind="celery", every=3600)
    worker = scheduler()
    tick(worker)
    due_now(kit, "report")
    tick(worker)
    drain()
    (dead,) = Queue("default").peek(state="dead")
    assert "There is no Celery app" in dead.reason


def _missing():
    raise ConfigurationError("There is no Celery app in this process.")
