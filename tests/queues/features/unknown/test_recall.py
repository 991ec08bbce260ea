"""Jobs whose calls a worker can't run: they go back, uncounted, until a worker comes that can."""

from time import monotonic
from types import SimpleNamespace

import pytest

from redis_kit.queues import Cancelled, Queue, task
from redis_kit.queues.engine import calls as moves
from redis_kit.queues.engine import message as messages
from redis_kit.queues.errors import LeaseLost, UnknownTask
from redis_kit.queues.features.unknown import middleware
from redis_kit.queues.features.unknown import recall as recalls
from redis_kit.queues.features.unknown.middleware import CANCELLED, RETURNED, defer
from redis_kit.queues.features.unknown.recall import Recall, can_run
from redis_kit.queues.reports import unknown_calls
from redis_kit.queues.tasks import registry
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.testing.jobs import drain, processor

DAY = 86_400
ran: list[object] = []
NAME = f"{__name__}.greet"


@pytest.fixture
def queue(kit):
    ran.clear()
    return Queue("default")


def greet(name: object, *, loud: bool = False) -> object:
    """A function that tests make a task of."""
    ran.append(name)
    return name


def add(context: object, first: int, second: int = 0) -> None:
    """One that takes its context, and fails in a way that looks like wrong arguments."""
    raise TypeError("add() missing 1 required positional argument")


@pytest.fixture
def release():
    """A task, and functions with which this process forgets it and knows it again, as workers of two releases."""
    made = task(greet)

    class Release:
        task = made
        call = f'["{NAME}", 1]'

        def forget(self):
            registry._tasks.pop(made.module_path)

        def deploy(self):
            registry.register(made)

    yield Release()
    registry._tasks.pop(made.module_path, None)


def now(kit):
    seconds, micros = kit.client.time()
    return seconds * 1000 + micros / 1000


def waits(kit, queue):
    """Return the ids of scheduled jobs, and in how many seconds they are due."""
    found = kit.client.zrange(queue.key("scheduled"), 0, -1, withscores=True)
    return {id: (due - now(kit)) / 1000 for id, due in found}


def pass_time(kit, queue, seconds):
    """Let the jobs that were given back be as old as that, and due."""
    for key in kit.client.scan_iter(f"{queue.key('deferred')}:*"):
        for member in kit.client.zrange(key, 0, -1):
            kit.client.zincrby(key, -1000 * seconds, member)
    for id in kit.client.zrange(queue.key("scheduled"), 0, -1):
        kit.client.zadd(queue.key("scheduled"), {id: now(kit) - 1})


def recall(queue, *shapes):
    """Do what a supervisor does whose beat told of these."""
    duty = Recall(lambda queues: None)
    duty.heard(WorkerQueue(queue.name, worker="w", about="{}"), SimpleNamespace(unknown=shapes))
    duty.run()


def test_unknown_task_goes_back_and_no_attempt_counts(kit, queue, release):
    result = release.task.enqueue("a")
    release.forget()
    assert drain() == 1
    (waiting,) = queue.peek(state="scheduled")
    assert (waiting.attempts, waiting.crashes, queue.counts().dead) == (0, 0, 0)
    assert 1 < waits(kit, queue)[result.id] <= 2.1
    release.deploy()
    result.refresh()
    assert (result.status, result.attempts, result.errors, result.worker_ids) == ("READY", 0, [], [])


def test_delay_is_the_time_it_has_waited_and_at_most_ten_minutes(kit, queue, release):
    id = release.task.enqueue("a").id
    release.forget()
    drain()
    for age, expected in ((5, 5), (95, 100), (200, 300), (400, 600), (5000, 600)):
        pass_time(kit, queue, age)
        assert drain() == 1
        assert waits(kit, queue)[id] == pytest.approx(expected, abs=15)
    assert queue.peek(state="scheduled")[0].attempts == 0


def test_job_is_dead_when_nobody_could_run_it_for_a_day(kit, queue, release):
    result = release.task.enqueue("a")
    release.forget()
    drain()
    pass_time(kit, queue, DAY - 10)
    drain()
    assert queue.counts().dead == 0
    pass_time(kit, queue, 10)
    drain()
    (dead,) = queue.peek(state="dead")
    assert dead.reason.startswith(f"unknown task {NAME!r}")
    release.deploy()
    result.refresh()
    assert (result.status, [error.exception_class for error in result.errors]) == ("FAILED", [UnknownTask])
    release.forget()
    queue.requeue([result.id])  # as if new
    drain()
    assert queue.counts().dead == 0


@pytest.mark.parametrize(("ttl", "dead"), [(0, 1), (DAY, 0)])
def test_option_says_for_how_long(kit, queue, release, ttl, dead):
    kit.options(QUEUES={"UNKNOWN_TASK_TTL": ttl})
    release.task.enqueue("a")
    release.forget()
    drain()
    assert queue.counts().dead == dead


@pytest.mark.parametrize(
    "call",
    [
        {"args": []},
        {"args": [1, 2]},
        {"args": [1], "kwargs": {"quiet": True}},
        {"kwargs": {"loud": True}},
        {"args": [1], "kwargs": {"name": 1}},
    ],
    ids=str,
)
def test_arguments_that_do_not_fit_the_function_here_are_for_other_workers(queue, release, call):
    queue.put({"task": release.task.module_path, **call})
    drain()
    assert (queue.counts().scheduled, queue.counts().dead, ran) == (1, 0, [])
    with pytest.raises(UnknownTask, match=f"arguments do not fit {NAME}\\(name: object"):
        registry.find_for(message(call))


def message(call):
    return unknown_calls.Message(NAME, call.get("args", []), call.get("kwargs", {}))


@pytest.mark.parametrize("call", [{"args": [1]}, {"kwargs": {"name": 1}}, {"args": [1], "kwargs": {"loud": True}}])
def test_arguments_that_fit_run(queue, release, call):
    queue.put({"task": release.task.module_path, **call})
    drain()
    assert ran == [1]


def test_type_error_inside_the_function_is_a_failure(queue):
    queue.put({"task": task(takes_context=True, max_attempts=1)(add).module_path, "args": [1]})
    result = task(takes_context=True, max_attempts=1)(add).enqueue(1)
    drain()
    (dead,) = [one for one in queue.peek(state="dead") if one.id == result.id]
    assert dead.reason.startswith("TypeError: add() missing")


def test_message_of_a_newer_release_waits_for_its_workers(queue, monkeypatch):
    queue.put({"task": "x.y", "v": 9})
    queue.put({"task": "x.y", "v": 0})
    drain()
    assert (queue.counts().scheduled, queue.counts().dead) == (1, 1)
    assert not can_run("[null, 9]")
    monkeypatch.setattr(messages, "message_fields", lambda: {9: "later"})
    assert can_run("[null, 9]")


def test_worker_that_knows_the_task_gets_the_oldest_jobs_at_once(kit, queue, release):
    for number in range(3):
        release.task.enqueue(number)
    release.task.using(priority=5).enqueue("high")
    release.forget()
    assert drain() == 4
    recall(queue, release.call)  # by one that does not know it
    assert queue.counts().ready == 0
    release.deploy()
    recall(queue, release.call)
    assert queue.counts().ready == 4
    assert drain() == 4
    assert ran == ["high", 0, 1, 2]
    assert kit.client.exists(*[key for key in kit.keys() if "deferred" in key] or ["none"]) == 0


def test_jobs_are_recalled_in_bounded_steps(kit, queue, release, monkeypatch):
    monkeypatch.setattr(recalls, "RECALLED", 5)
    for number in range(12):
        release.task.enqueue(number)
    release.forget()
    drain()
    release.deploy()
    for _ in range(3):
        recall(queue, release.call)
    assert queue.counts().ready == 5  # one step a second, whoever asks
    assert drain() == 5


def test_many_such_jobs_cost_little(kit, queue, release):
    """Together they are tried 50 times a second."""
    for number in range(300):
        release.task.enqueue(number)
    release.forget()
    mine = WorkerQueue(queue.name, worker="w", about="{}")
    runner = processor([mine])
    jobs = mine.claim(300, worker="w")
    began = monotonic()
    for job in jobs:
        runner.run(0, 0, job)
    took = monotonic() - began
    due = sorted(waits(kit, queue).values())
    assert len(due) == 300
    assert 249 * 0.02 - 1.5 <= due[-1] - due[50] <= 249 * 0.02 + 1.5 + took


def test_cancelled_while_it_waits_it_is_gone_and_no_longer_counted(kit, queue, release):
    pytest.importorskip("redis_kit.queues.features.cancel")
    result = release.task.enqueue("a")
    release.forget()
    drain()
    release.deploy()
    assert result.cancel()
    assert result.status == "FAILED"
    release.forget()
    recall(queue, release.call)
    assert row(queue) == ()


def row(queue):
    from redis_kit.queues.inspection import queue_stats

    return queue_stats([queue.name])[queue.name].unknown


def test_job_cancelled_at_a_worker_that_can_not_run_it_is_not_returned(queue, release):
    pytest.importorskip("redis_kit.queues.features.cancel")
    result = release.task.enqueue("a")
    (job,) = queue.claim(worker="w1")
    result.cancel()
    assert queue.run_flow(defer(queue, job, release.call, 0)) == CANCELLED
    queue.sign_off(worker="w1")
    release.forget()
    drain()
    assert queue.counts() == (0, 0, 0, 0)
    release.deploy()
    result.refresh()
    assert [error.exception_class for error in result.errors] == [Cancelled]


def test_it_expires_when_its_task_says_so_known_or_not(kit, queue, release):
    result = task(expires=1000)(greet).enqueue("a")
    release.forget()
    drain()
    due = float(kit.client.hget(queue.key("jobs"), result.id).split()[3])
    pass_time(kit, queue, 990)
    drain()
    assert float(kit.client.hget(queue.key("jobs"), result.id).split()[3]) == due
    record = kit.client.hget(queue.key("jobs"), result.id)
    kit.client.hset(queue.key("jobs"), result.id, record.replace(f"{due:.0f}", f"{due - 1_001_000:.0f}", 1))
    pass_time(kit, queue, 0)
    drain()
    assert queue.peek(state="dead")[0].reason.startswith("expired: ")


def test_unique_key_stays_in_use(queue, release):
    pytest.importorskip("redis_kit.queues.features.unique")
    first = task(unique=True)(greet).enqueue("a")
    release.forget()
    drain()
    release.deploy()
    assert task(unique=True)(greet).enqueue("a").id == first.id
    assert queue.counts().scheduled == 1


def test_repeat_after_a_lost_answer_gets_the_same_answer(queue, release):
    release.task.enqueue("a")
    (job,) = queue.claim(worker="w1")
    for _ in range(2):
        assert queue.run_flow(defer(queue, job, release.call, 0)) == RETURNED
    assert queue.counts().scheduled == 1
    queue.run_now(job.id)
    (again,) = queue.claim(worker="w2")
    queue.ack(again)
    with pytest.raises(LeaseLost):
        queue.run_flow(defer(queue, again, release.call, 0))


def test_own_id_that_is_used_again_begins_its_time_again(kit, queue, release):
    release.forget()
    call = {"task": release.task.module_path, "args": [1]}
    for _ in range(2):
        queue.put(call, id="report")
        drain()
        pass_time(kit, queue, DAY)
        (job,) = queue.claim()
        queue.ack(job)  # by somebody who could
    queue.put(call, id="report")
    drain()
    assert (queue.counts().scheduled, queue.counts().dead) == (1, 0)


def test_worker_that_dies_with_it_counts_a_crash_as_with_any_job(queue, release):
    release.task.enqueue("a")
    (job,) = queue.claim(worker="w1")
    queue.run_flow(moves_reap(queue, job))
    release.forget()
    drain()
    (waiting,) = queue.peek(state="scheduled")
    assert (waiting.attempts, waiting.crashes) == (1, 1)


def moves_reap(queue, job):
    return (yield moves.REAP(queue.key(""), "w1", "died", 10, 3, 100, "", job.id))


def test_report_tells_what_no_worker_knows(queue, release):
    for _ in range(2):
        release.task.enqueue("a")
    release.forget()
    drain()
    (found,) = row(queue)
    assert (found.task, found.call, found.jobs) == (release.task.module_path, f"{release.task.module_path}(_)", 2)
    assert 0 <= found.age < 30
    assert not found.known
    release.deploy()
    recall(queue, release.call)
    assert row(queue) == ()
    release.forget()
    drain()  # a worker of the old release is there, too
    (found,) = row(queue)
    assert found.known


def test_names_of_calls_are_bounded(kit, queue, monkeypatch):
    monkeypatch.setattr(middleware, "SHAPES", 3)
    for number in range(6):
        queue.put({"task": f"t{number}" + "x" * 500 * number})
    drain()
    assert queue.counts().scheduled == 6
    assert kit.client.hlen(queue.key("unknown")) == 3
    assert all(len(value) < 1100 for value in kit.client.hvals(queue.key("unknown")))


def test_log_says_what_to_do_once_a_minute_for_a_task(queue, release, caplog):
    path = release.task.module_path
    release.task.enqueue("a")
    queue.put({"task": path, "args": [1, 2, 3]})
    release.forget()
    drain()
    duty = Recall(lambda queues: None)
    source = WorkerQueue(queue.name, worker="w", about="{}")
    for _ in range(3):
        duty.heard(source, SimpleNamespace(unknown=[release.call, f'["{path}", 3]']))
        duty.run()
    (told,) = [record.getMessage() for record in caplog.records if "no living worker" in record.getMessage()]
    assert f"can run '{path}(_)': 2 jobs wait; the first has waited for 0." in told
    assert " s and will be dead in 24 h if no worker can run it. To run it, " in told
    assert "restart this worker with the new code" in told
    release.deploy()
    duty = Recall(lambda queues: None)
    duty.heard(source, SimpleNamespace(unknown=[f'["{path}", 3]']))
    duty.run()
    assert "give new parameters a default" in caplog.text


@pytest.mark.parametrize(
    ("shape", "shown"),
    [
        ('["a.b", 0]', "a.b()"),
        ('["a.b", 2, "html", "to"]', "a.b(_, _, html=, to=)"),
        ('["a.b", 9]', "a.b(_, _, _, _, _, ...)"),
        ('["a.b"]', "a.b"),
        ("[null, 9]", "(a message of version 9)"),
        ("[", ""),
        ("{}", ""),
        ('["a.b", 1, {}]', ""),
        ('["a.b", true]', "a.b(_)"),
    ],
)
def test_shapes_are_shown_as_calls(shape, shown):
    task, call, version = unknown_calls.described(shape)
    assert (task, call) == ("a.b" if shown.startswith("a.b") else "", shown)
    assert version == (9 if "version 9" in shown else None)
    assert not can_run(shape)
