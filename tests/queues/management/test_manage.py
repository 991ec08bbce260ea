"""Looking into a queue, and changing what is in it by hand."""

import time

import pytest

from redis_kit.core import connections
from redis_kit.core.errors import InvalidValue, KeyConflict
from redis_kit.queues import LeaseLost, Queue, QueueCounts
from redis_kit.queues.management import manage
from redis_kit.queues.reports.job_pages import first_jobs


@pytest.fixture
def queue(kit):
    return Queue("mail")


@pytest.fixture
def full(queue):
    """One job in each state, each with the state as its payload and id."""
    for name in ("dead", "running"):
        queue.put(name, id=name, priority=3)
    queue.nack(*queue.claim(worker="w1"), max_attempts=1, error="ValueError: no")
    queue.claim(worker="w1")
    queue.put("scheduled", id="scheduled", delay=60, priority=7)
    queue.put("ready", id="ready")
    return queue


def ids(jobs):
    return [job.id for job in jobs]


def test_ready_jobs_are_seen_in_the_order_of_claims(queue, twin):
    for name, priority in (("a", 0), ("low", -5), ("high", 5), ("b", 0)):
        queue.put(name, id=name, priority=priority)
    seen = twin(queue.peek)
    assert ids(seen) == ["high", "a", "b", "low"]
    assert [(job.state, job.priority, job.attempts, job.payload) for job in seen[:1]] == [("ready", 5, 0, "high")]
    assert ids(twin(queue.peek, 2)) == ["high", "a"]
    assert ids(queue.claim(4)) == ids(seen)


def test_scheduled_jobs_are_seen_by_due_time(queue, twin):
    for delay in (90, 30, 60):
        queue.put(delay, id=str(delay), delay=delay)
    seen = twin(queue.peek, state="scheduled")
    assert ids(seen) == ["30", "60", "90"]
    assert seen[2].due - seen[0].due == pytest.approx(60, abs=5)
    assert twin(queue.peek) == []


def test_running_and_dead_jobs_are_seen_with_worker_and_reason(full, twin):
    (running,) = twin(full.peek, state="running")
    assert (running.id, running.worker, running.attempts) == ("running", "w1", 1)
    (dead,) = twin(full.peek, state="dead")
    assert (dead.id, dead.reason, dead.attempts, dead.worker) == ("dead", "ValueError: no", 1, None)
    assert dead.died == pytest.approx(time.time(), abs=60)


def test_dead_jobs_are_seen_from_the_latest(queue, twin, kit):
    for number in (1, 3, 2):
        queue.put(number, id=str(number))
        queue.nack(*queue.claim(), max_attempts=1)
    kit.client.zadd(queue.key("dead"), {"1": 1000, "3": 3000, "2": 2000})
    assert [(job.id, job.died) for job in twin(queue.peek, state="dead")] == [("3", 3.0), ("2", 2.0), ("1", 1.0)]


def test_looking_changes_nothing_and_is_one_round_trip(full, twin, kit, commands):
    before = {key: kit.client.dump(key) for key in kit.keys()}
    for state in manage.STATES:
        twin(full.peek, state=state)
    twin(full.get, "ready")
    with commands(kit) as sent:
        twin(full.peek, state="dead")
        twin(full.get, "dead")
    assert sent == ["EVALSHA"] * 2
    assert {key: kit.client.dump(key) for key in kit.keys()} == before


def test_large_jobs_are_seen_in_parts(queue, monkeypatch):
    monkeypatch.setattr(manage, "MOST_BYTES", 1000)
    queue.put_many(["x" * 400] * 9)
    assert len(queue.peek()) == 3
    assert len(queue.run_flow(manage.find(queue, "ready", manage.ANY, limit=8))) == 8


@pytest.mark.parametrize("state", manage.STATES)
def test_job_is_found_in_any_state(full, twin, state):
    found = twin(full.get, state)
    assert (found.id, found.state, found.payload) == (state, state, state)
    assert found.worker == ("w1" if state == "running" else None)
    assert found.reason == ("ValueError: no" if state == "dead" else "")
    assert (found.died is None) == (state != "dead")


def test_job_that_is_done_is_not_found(full, twin):
    assert twin(full.get, "nobody") is None
    full.put("x", id="x", priority=9)
    full.ack(*full.claim())
    assert twin(full.get, "x") is None


def test_job_of_a_similar_id_is_not_taken_for_it(queue):
    queue.put(1, id="b")
    queue.claim(worker="w1")
    queue.put(1, id="ab")
    queue.claim(worker="w2")
    assert queue.get("b").worker == "w1"


@pytest.mark.parametrize("state", ["ready", "scheduled", "dead"])
def test_job_is_removed_without_a_trace(full, twin, kit, state):
    assert twin(full.delete, state)
    assert not twin(full.delete, state)
    assert getattr(full.counts(), state) == 0
    assert full.get(state) is None
    assert not kit.client.hexists(full.key("jobs"), state)
    assert not kit.client.hexists(full.key("reasons"), state)
    assert sum(full.counts()) == 3


def test_running_job_is_not_removed(full, twin):
    assert not twin(full.delete, "running")
    assert full.counts() == QueueCounts(1, 1, 1, 1)


def test_scheduled_job_is_run_now_in_its_priority(full, twin):
    assert twin(full.run_now, "scheduled")
    assert full.counts() == QueueCounts(0, 2, 1, 1)
    (job,) = full.claim()
    assert (job.id, job.priority, job.attempt) == ("scheduled", 7, 1)
    assert job.due == pytest.approx(time.time(), abs=30)


@pytest.mark.parametrize("state", ["ready", "running", "dead", "nobody"])
def test_only_scheduled_jobs_are_run_now(full, twin, state):
    assert not twin(full.run_now, state)
    assert full.counts() == QueueCounts(1, 1, 1, 1)


def test_attempts_of_a_job_that_is_run_now_stay_counted(queue):
    queue.put(1, id="a")
    queue.nack(*queue.claim(), delay=60)
    queue.run_now("a")
    assert queue.claim()[0].attempt == 2


def test_job_that_is_run_now_wakes_a_worker(queue, kit):
    queue.put(1, id="a", delay=60)
    kit.client.delete(queue.key("signal"))
    queue.run_now("a")
    assert kit.client.llen(queue.key("signal")) == 1


@pytest.fixture
def dead(queue):
    """A hundred dead jobs."""
    for number in range(100):
        queue.put(number, id=str(number))
    for job in queue.claim(100):
        queue.nack(job, max_attempts=1)
    return queue


def test_chosen_dead_jobs_are_put_back_as_if_they_were_new(dead, twin, kit):
    assert twin(dead.requeue, ["7", "3", "nobody", "7"]) == 2
    assert dead.counts() == QueueCounts(0, 2, 0, 98)
    assert [(job.id, job.attempt) for job in dead.claim(5)] == [("7", 1), ("3", 1)]
    assert kit.client.hlen(dead.key("reasons")) == 98
    assert twin(dead.requeue, []) == 0


def test_many_dead_jobs_are_put_back_in_few_calls(dead, twin, kit, commands, monkeypatch):
    monkeypatch.setattr(manage, "CHUNK", 40)
    with commands(kit) as sent:
        assert twin(dead.requeue, (str(number) for number in range(100))) == 100
    assert sent == ["EVALSHA"] * 3


def test_jobs_that_are_not_dead_are_not_put_back(full, twin):
    assert twin(full.requeue, ["ready", "scheduled", "running"]) == 0
    assert full.counts() == QueueCounts(1, 1, 1, 1)


@pytest.mark.parametrize("state", manage.PURGED)
def test_purge_removes_all_of_one_state_and_no_other(full, twin, kit, state):
    assert twin(full.purge, state) == 1
    assert full.counts() == QueueCounts(1, 1, 1, 1)._replace(**{state: 0})
    assert kit.client.hlen(full.key("jobs")) == 3
    assert kit.client.hlen(full.key("reasons")) == (0 if state == "dead" else 1)
    assert twin(full.purge, state) == 0


def test_purge_goes_in_batches(queue, twin, kit, commands):
    twin(queue.purge, "ready")
    queue.put("first")
    twin(queue.purge, "ready")
    queue.put_many(range(1200))
    with commands(kit) as sent:
        assert twin(queue.purge, "ready") == 1200
    assert sent == ["EVALSHA"] * 4  # the first one counts


def test_purge_ends_though_jobs_keep_coming(queue, monkeypatch):
    monkeypatch.setattr(manage, "CHUNK", 10)
    queue.put_many(range(30))
    steps = manage.purge(queue, state="ready")
    step = next(steps)
    for _ in range(3):
        reply = step.run(connections.client())
        queue.put_many(range(10))
        step = steps.send(reply)
    with pytest.raises(StopIteration) as end:
        steps.send(step.run(connections.client()))
    assert (end.value.value, queue.counts().ready) == (30, 30)


def test_running_jobs_are_never_purged(full, twin):
    with pytest.raises(InvalidValue, match="ready, scheduled, dead"):
        twin(full.purge, "running")
    assert full.counts().running == 1


def test_ack_of_a_job_after_all_others_were_purged_is_recorded(full):
    full.put("x", id="x", priority=9)
    (job,) = full.claim(worker="w2")
    for state in manage.PURGED:
        full.purge(state)
    full.ack(job)
    with pytest.raises(LeaseLost):
        full.nack(job)


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        *(("get", id) for id in ("", "a b", "x" * 129, None, 5, "../x")),
        *(("delete", id) for id in ("", "<b>", None)),
        *(("run_now", id) for id in ("", "<b>", None)),
        *(("requeue", ids) for ids in ("abc", ["a b"], [None])),
        *(("purge", state) for state in ("done", "", None, ["dead"])),
        *(("peek", limit) for limit in (0, 1001, True, "1")),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(method, wrong):
    with pytest.raises(InvalidValue):
        getattr(Queue("mail"), method)(wrong)


def test_unknown_state_is_refused():
    with pytest.raises(InvalidValue, match="state must be one of ready, scheduled, running, dead, not 'done'"):
        Queue("mail").peek(state="done")


@pytest.mark.parametrize("part", ["jobs", "ready", "scheduled", "dead", "reasons"])
def test_key_of_another_type_is_a_conflict_and_changes_nothing(full, kit, part):
    key = full.key(part)
    kit.client.delete(key)
    kit.client.set(key, "x")
    conflicts = 0
    for call in (
        lambda: full.delete("ready"),
        lambda: full.run_now("scheduled"),
        lambda: full.requeue(["dead"]),
        lambda: full.purge("ready"),
        lambda: full.purge("dead"),
        lambda: full.get("dead"),
    ):
        before = {key: kit.client.dump(key) for key in kit.keys()}
        try:
            call()
        except KeyConflict:
            conflicts += 1
            assert {key: kit.client.dump(key) for key in kit.keys()} == before
    assert conflicts >= 2


def test_full_server_can_be_cleared(own_kit):
    own_kit.options(READ_TIMEOUT=2.0, CONNECT_TIMEOUT=2.0)
    queue = Queue("mail")
    queue.put_many(range(3))
    queue.put(1, id="later", delay=60)
    own_kit.client.config_set("maxmemory", 1)
    queue.pause()
    assert queue.run_now("later")
    assert queue.delete("later")
    assert queue.purge("ready") == 3
    assert queue.resume()


def test_cancel_deletes_a_job_that_waits_and_marks_one_that_runs(full, twin, kit):
    pytest.importorskip("redis_kit.queues.features.cancel")
    assert twin(full.cancel, "ready")
    assert full.get("ready") is None
    assert twin(full.cancel, "running")
    assert full.get("running").state == "running"
    assert kit.client.hkeys(full.key("cancels")) == ["running"]
    assert not twin(full.cancel, "dead")
    assert not twin(full.cancel, "nobody")


def test_single_id_is_not_taken_for_several(queue, twin):
    with pytest.raises(InvalidValue, match="Give a list of ids, not 'abc'"):
        twin(queue.requeue, "abc")


@pytest.mark.parametrize("more", [{"task": "x"}, {"error": "ValueError"}, {"limit": 1}])
def test_ids_and_a_cause_or_limit_are_refused_together(queue, twin, more):
    with pytest.raises(InvalidValue, match="either ids, or task, error, tag and limit"):
        twin(queue.requeue, ["a"], **more)


def test_job_that_changes_its_state_between_two_pages_is_found_once(kit, queue, monkeypatch):
    monkeypatch.setattr(manage, "PAGE", 3)
    queue.put_many(range(10), delay=60)
    flow, reply, found = manage.find(queue, "scheduled", manage.JobFilter(task="")), None, []
    moved = queue.peek(3, state="scheduled")[-1].id
    try:
        while True:
            reply = flow.send(reply).run(connections.client())
            queue.run_now(moved)  # after this page, others of the same time are read again
    except StopIteration as stop:
        found = ids(stop.value)
    assert len(found) == len(set(found)) == 10


def test_done_jobs_with_a_filter_are_read_at_once(kit, queue, commands):
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"DONE_LIMIT": 5000}}})
    for _ in range(3):
        queue.put_many(range(1000))
        queue.ack(*queue.claim(1000))
    with commands(kit) as sent:
        assert len(queue.run_flow(first_jobs(queue, "done", 5000, manage.JobFilter(task="")))) >= 2000
    assert len(sent) == 1


def test_done_jobs_of_one_id_are_all_listed_from_the_latest(kit, queue):
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"DONE_LIMIT": 10}}})
    for worker in ("w1", "w2", "w3"):
        queue.put("x", id="same")
        queue.ack(*queue.claim(worker=worker))
    assert [job.worker for job in queue.run_flow(first_jobs(queue, "done", 2))] == ["w3", "w2"]
