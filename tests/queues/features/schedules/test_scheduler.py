"""Schedules of real workers: ticks, policies, deaths, releases side by side, and servers that lose their data."""

import json

import pytest

from redis_kit.queues import Queue
from redis_kit.queues.features.schedules import store as store
from redis_kit.queues.features.schedules.store import Schedules
from tests.fixtures.process import wait_for
from tests.queues.support.journal import LASTING
from tests.queues.support.scheduled import states

pytestmark = pytest.mark.alone(20)


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


def of(name):
    return states().get(name, store.State())


def test_worker_ticks_in_time_and_jobs_overlap_as_the_policies_say(schedules, journal, start_worker, tmp_path):
    more = {"kwargs": {"until": str(tmp_path / "go")}}
    schedules(
        *(every(0.4, "quick"), every(3600, "rare"), every(0.7, "off", enabled=False)),
        *(every(0.4, name, overlap=name, **more) for name in ("skip", "queue_one", "allow")),
    )
    start_worker("--threads", 32)
    wait_for(lambda: of("quick").runs >= 4 and of("skip").skips >= 3 and of("allow").runs >= 3)
    wait_for(lambda: of("queue_one").skips >= 2)
    assert (of("rare").runs, of("off").next, of("queue_one").outcome) == (0, None, store.WAITS)
    assert of("rare").next is not None
    begun = journal.names("begin")
    assert (begun.count("skip"), begun.count("queue_one"), begun.count("allow") >= 3) == (1, 1, True)
    assert set(journal.names("end")) == {"quick"}
    assert of("quick").late < 2000  # on a machine that has other work
    (tmp_path / "go").touch()
    wait_for(lambda: journal.names("end").count("queue_one") >= 2 and of("skip").runs >= 2)


def test_schedules_go_on_after_the_death_of_a_worker_and_the_loss_of_data(schedules, kit, journal, start_worker):
    schedules(every(0.4, "quick"))
    first, _ = start_worker(), start_worker()
    wait_for(lambda: len(journal.names()) >= 2)
    first.kill()
    before = len(journal.names())
    wait_for(lambda: len(journal.names()) >= before + 2)
    kit.client.delete(*kit.keys())
    before = len(journal.names())
    wait_for(lambda: len(journal.names()) >= before + 2)
    assert set(states()) == {"quick"}


def test_worker_with_older_code_leaves_new_schedules_to_others(schedules, journal, start_worker, monkeypatch):
    schedules(every(0.4, "old"))
    start_worker()
    wait_for(lambda: "old" in journal.names())
    schedules(every(0.4, "old", args=["changed"]), every(0.4, "new"))
    start_worker()
    wait_for(lambda: {"new", "changed"} <= set(journal.names()))
    began = journal.names().index("changed")
    wait_for(lambda: len(journal.names()) >= began + 6)
    assert "old" not in journal.names()[began + 2 :]


def test_burst_runs_no_ticks(schedules, start_worker):
    schedules(every(0.1, "quick"))
    assert start_worker("--burst").wait(20) == 0
    found = Schedules("all")
    assert found.run_flow(store.page("names", 0, 100)).total == 0
    assert Queue("default").counts()[:3] == (0, 0, 0)
