"""Schedules of real workers: ticks, policies, deaths, and servers that lose their data."""

import json

import pytest

from redis_kit.queues import Queue
from redis_kit.queues.store import schedules as store
from redis_kit.queues.store.schedules import Schedules
from redis_kit.queues.tasks.schedules import state
from tests.fixtures.process import wait_for
from tests.queues.support.journal import LASTING

pytestmark = pytest.mark.alone(30)


@pytest.fixture
def schedules(kit, monkeypatch):
    """A function that gives the workers started after it these schedules."""
    kit.options(QUEUES=LASTING)
    monkeypatch.setenv("MORE_APPS", "tests.queues.support.beats")

    def declare(*given):
        monkeypatch.setenv("SCHEDULES", json.dumps(given))

    return declare


def every(seconds, name, **more):
    return {"every": seconds, "name": name, "args": [name], **more}


def page():
    found = Schedules("all")
    return found.run_flow(store.page(found, "names", 0, 100))


def states():
    return {schedule.name: state.read(schedule.state) for schedule in page().schedules}


def test_running_worker_ticks_each_schedule_in_time(schedules, journal, start_worker):
    schedules(every(0.5, "quick"), every(3600, "rare"), every(0.7, "off", enabled=False))
    start_worker()
    wait_for(lambda: states().get("quick", state.State()).runs >= 4)
    found = states()
    assert set(journal.names("begin")) == {"quick"}
    assert found["quick"].late < 500
    assert found["quick"].runs >= found["quick"].skips
    assert (found["rare"].runs, found["off"].next) == (0, None)
    assert found["rare"].next is not None


def test_tick_is_skipped_while_the_job_of_an_earlier_one_runs(schedules, journal, start_worker, tmp_path):
    go = tmp_path / "go"
    more = {"kwargs": {"until": str(go)}}
    schedules(every(0.3, "skip", **more), every(0.3, "queue_one", overlap="queue_one", **more))
    start_worker("--threads", 8)
    wait_for(lambda: states().get("skip", state.State()).skips >= 3)
    assert states()["queue_one"].outcome == state.WAITS
    assert sorted(journal.names("begin")) == ["queue_one", "skip"]
    assert Queue("default").counts()[:3] == (0, 0, 2)
    go.touch()
    wait_for(lambda: journal.names("end").count("queue_one") >= 2)


def test_jobs_beside_each_other_are_allowed_if_the_schedule_says_so(schedules, journal, start_worker, tmp_path):
    schedules(every(0.3, "allow", overlap="allow", kwargs={"until": str(tmp_path / "go")}))
    start_worker()
    wait_for(lambda: journal.names("begin").count("allow") >= 3)
    assert journal.names("end") == []
    (tmp_path / "go").touch()


def test_schedules_go_on_after_the_server_lost_its_data(schedules, kit, journal, start_worker):
    schedules(every(0.5, "quick"))
    start_worker()
    wait_for(lambda: len(journal.names()) >= 2)
    kit.client.delete(*kit.keys())
    before = len(journal.names())
    wait_for(lambda: len(journal.names()) >= before + 2)
    assert [schedule.name for schedule in page().schedules] == ["quick"]


def test_another_worker_ticks_when_one_is_killed(schedules, journal, start_worker):
    schedules(every(0.5, "quick"))
    first, _ = start_worker(), start_worker()
    wait_for(lambda: len(journal.names()) >= 2)
    first.kill()
    before = len(journal.names())
    wait_for(lambda: len(journal.names()) >= before + 3)


def test_worker_with_older_code_leaves_new_schedules_to_others(schedules, journal, start_worker, monkeypatch):
    schedules(every(0.4, "old"))
    old = start_worker()
    wait_for(lambda: "old" in journal.names())
    schedules(every(0.4, "old"), every(0.4, "new"))
    start_worker()
    wait_for(lambda: "new" in journal.names())
    old.terminate()
    old.wait(20)
    before = journal.names().count("new")
    wait_for(lambda: journal.names().count("new") >= before + 2)
    assert states()["old"].runs >= 2


def test_burst_runs_no_ticks(schedules, journal, start_worker):
    schedules(every(0.1, "quick"))
    assert start_worker("--burst").wait(20) == 0
    assert page().total == 0
