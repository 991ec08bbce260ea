"""What the confirmations of queues say: how many jobs, whose, and what they run."""

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.queues import Queue
from redis_kit.queues.dashboard import actions
from redis_kit.queues.dashboard.actions import GroupTarget, JobTarget, SupervisorTarget
from redis_kit.queues.dashboard.queues_page import QueuesPanel
from redis_kit.queues.dashboard.workers_page import WorkersPanel
from redis_kit.queues.engine import calls
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.reports import job_pages
from tests.queues.support.putting import die


@pytest.fixture
def mail(kit):
    """A queue with a dead job, a running one, two ready ones and a scheduled one."""
    queue = Queue("mail")
    queue.put_many(range(4))
    queue.put("later", delay=60, id="later")
    queue.nack(*queue.claim(worker="w1"), max_attempts=1, error="ValueError: no")
    queue.claim(worker="w1")
    return queue


def effect(name, value, panel=QueuesPanel):
    return str(panel().actions()[name].effect(value))


def of(queue, state):
    return JobTarget(queue.name, queue.peek(1, state=state)[0].id).value


def test_pause_counts_the_jobs(mail):
    assert effect("pause", "mail").endswith("Now: 1 running, 2 ready, 1 scheduled.")
    with pytest.raises(InvalidValue, match="There is no queue other"):
        effect("pause", "other")


def test_retry_counts_the_jobs_and_names_their_tasks(mail):
    assert effect("retry_dead", "mail") == "1 dead job becomes ready as if it were new. Tasks: no task (1)."
    group = GroupTarget("mail", "", "ValueError").value
    assert effect("retry_group", group) == "1 dead job becomes ready as if it were new. Tasks: no task (1)."
    mail.requeue()
    for name, value in (("retry_dead", "mail"), ("retry_group", group)):
        with pytest.raises(InvalidValue, match="Nothing was retried"):
            effect(name, value)


def test_retry_of_a_part_says_how_many_there_are(mail, monkeypatch):
    monkeypatch.setattr(actions, "MOST_RETRIED", 1)
    mail.nack(*mail.claim(worker="w1"), max_attempts=1, error="ValueError: no")
    more = "Tasks: no task (2). The queue has 2 dead jobs: repeat this for the others."
    assert effect("retry_dead", "mail") == f"1 dead job becomes ready as if it were new. {more}"


def test_cancellation_and_deletion_depend_on_the_state(mail):
    for state in ("running", "ready"):
        assert effect("cancel", of(mail, state)).startswith("1 job will not run, or is stopped by its worker.")
    assert effect("cancel", of(mail, "ready")).endswith(" Tasks: no task (1).")
    for state in ("dead", "scheduled"):
        assert effect("delete", of(mail, state)).startswith("1 job is deleted, and can't be retried.")
    for name, state in (("cancel", "dead"), ("delete", "running")):
        with pytest.raises(InvalidValue, match="Nothing was"):
            effect(name, of(mail, state))


def test_stop_names_the_running_jobs(mail):
    about = '{"host": "web1", "pid": 7, "supervisor": "s1", "supervisor_pid": 5}'
    mail.run_flow(_heartbeat(mail, about))
    text = effect("stop", SupervisorTarget("web1", 5, "s1").value, WorkersPanel)
    assert text.startswith("1 worker process exits. 1 running job is finished first: ")
    with pytest.raises(InvalidValue, match="is gone"):
        effect("stop", SupervisorTarget("web1", 5, "s2").value, WorkersPanel)


def _heartbeat(queue, about):
    yield calls.heartbeat(queue.key(""), "w1", about)


def test_retry_of_a_group_counts_the_jobs_of_all_shards(kit, monkeypatch):
    shards = pytest.importorskip("redis_kit.queues.features.shards.spread")
    monkeypatch.setattr(actions, "LOOKED_THROUGH", 12)
    monkeypatch.setattr(job_pages, "LOOKED_THROUGH", 12)
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"SHARDS": 4}}})
    Queue("mail").put_many(range(8))
    Queue("mail").purge("ready")
    die(shards.Shard(spread().names("mail")[0]), *["KeyError: 1"] * 2)
    die(shards.Shard(spread().names("mail")[1]), *["ValueError: no"] * 11)
    group = GroupTarget("mail", "shop.tasks.send", "ValueError")
    assert str(group.effect("retry")).startswith("11 dead jobs")
    assert str(GroupTarget("mail", group.task, "KeyError").effect("retry")).startswith("2 dead jobs")
    assert "11" in str(group.retry())
