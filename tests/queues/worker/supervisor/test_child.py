"""A child as its supervisor sees it: calls that a signal ends, what is cleaned up after a death, jobs in words."""

import os
import signal
from math import inf
from time import sleep

import pytest

from redis_kit.core import connections, flow
from redis_kit.core.awaitables import LocalCall
from redis_kit.core.errors import InvalidValue, KeyConflict, RedisUnavailable
from redis_kit.core.steps import Call
from redis_kit.queues import LeaseLost, Queue, QueueCounts, TaskTimeout, framework, task
from redis_kit.queues.engine import calls, ids, liveness
from redis_kit.queues.engine.done import Ack
from redis_kit.queues.engine.liveness import poison
from redis_kit.queues.inspection import acontrol_worker, control_worker, list_workers, queue_stats
from redis_kit.queues.reports.lookup import look_up
from redis_kit.queues.tasks import registry
from redis_kit.queues.worker.shared.channel import pair
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.supervisor.child import Child, Reaper, SupervisedQueue, named
from redis_kit.queues.worker.supervisor.os_signals import Interrupted, Signals
from tests.queues.support import tasks
from tests.queues.support.duties import heartbeat

pytestmark = pytest.mark.once


@pytest.fixture
def queue(any_kit):
    return Queue("mail")


def reap(queue, worker, *ran):
    """Reap once; return how many jobs were taken, and the ids of dead ones."""
    taken, _, _, *told = connections.client().call(*calls.reap(queue.key(""), worker, ran).with_source())
    return taken, [job.id for job in poison(told)]


def test_jobs_that_ran_count_a_crash_and_the_others_do_not(queue, any_kit):
    queue.put_many(["a", "b", "c", "d"])
    a, b, c = queue.claim(3, worker="dead")
    assert reap(queue, "dead", b.id) == (3, [])
    assert queue.counts() == QueueCounts(0, 4, 0, 0)
    again = [job for _ in range(2) for job in queue.claim(4, worker="other")]
    assert [(job.payload, job.attempt, job.crashes) for job in again] == [
        ("a", 1, 0),
        ("c", 1, 0),
        ("d", 1, 0),
        ("b", 2, 1),
    ]
    for late in (a, b, c):
        with pytest.raises(LeaseLost):
            queue.ack(late)
    assert [worker.id for worker in list_workers(["mail"])] == ["other"]


def test_job_with_which_too_many_died_is_dead_and_the_next_one_is_not(queue, any_kit):
    any_kit.options(QUEUES={"MAX_CRASHES": 2})
    queue.put("bad", id="bad")
    queue.put("good", id="good")
    queue.claim(2, worker="w1")
    assert reap(queue, "w1", "bad") == (2, [])
    queue.claim(2, worker="w2")
    assert reap(queue, "w2", "bad") == (1, ["bad"])
    (dead,) = queue.peek(state="dead")
    assert (dead.reason, dead.crashes, dead.attempts) == ("poison: 2 processes died in which it ran alone", 2, 2)
    assert queue.counts() == QueueCounts(0, 1, 0, 1)


def test_repeat_and_unknown_worker_change_nothing(queue, any_kit):
    queue.put("a", id="a")
    queue.claim(worker="dead")
    assert reap(queue, "dead", "a") == (1, [])
    assert reap(queue, "dead", "a") == (0, [])
    assert reap(queue, "nobody", "a") == (0, [])
    assert queue.claim(worker="other")[0].crashes == 1


def test_many_jobs_are_taken_in_several_calls(queue, any_kit):
    queue.put_many(range(500))
    queue.claim(450, worker="dead")
    taken = []
    while not taken or taken[-1] == calls.TAKEN:
        taken.append(reap(queue, "dead")[0])
    assert taken == [200, 200, 50]
    assert [job.payload for job in queue.claim(500, worker="other")] == list(range(500))


@pytest.mark.parametrize("part", ["workers", "info", "running", "jobs", "ready", "signal", "dead", "reasons"])
def test_key_of_another_type_changes_nothing(queue, any_kit, part):
    queue.put("a", id="a")
    queue.claim(worker="dead")
    any_kit.client.delete(queue.key(part))
    any_kit.client.set(queue.key(part), "not ours")
    before = {key: any_kit.client.dump(key) for key in any_kit.keys()}
    with pytest.raises(KeyConflict):
        queue.run_flow(_reaped(queue))
    assert {key: any_kit.client.dump(key) for key in any_kit.keys()} == before


def _reaped(queue):
    return (yield calls.reap(queue.key(""), "dead", ["a"]))


@pytest.fixture
def child(any_kit):
    """A dead child, as its supervisor knows it: of two queues, with a board and nobody at the other end."""
    ours, theirs = pair()
    theirs.close()
    sources = [SupervisedQueue(name, worker="dead", about=ids.information()) for name in ("mail", "news")]
    one = Child(0, "dead", ours, StatusBoard(4), sources)
    yield one
    one.close()


def begun(child, index, limit=10):
    """Claim jobs for a child, and note that it runs them; return them by payload."""
    jobs = child.sources[index].exchange(limit).jobs
    for slot, job in enumerate(jobs, 2 * index):
        child.board.begin(slot, index, job.token, job.id, None)
    return {job.payload: job for job in jobs}


def note(child, slot, index, job, value=b"", keep=0):
    """Let a child have done a job whose end the server does not know."""
    child.board.note(Ack(index, job.token.encode(), job.id.encode(), value, keep).pack())
    child.board.end(slot)


def test_what_a_dead_child_had_done_is_not_done_again(child, any_kit):
    mail, news = Queue("mail"), Queue("news")
    mail.put_many(["done", "ran"])
    news.put("told", id="told")
    jobs = begun(child, 0)
    told = begun(child, 1)["told"]
    note(child, 0, 0, jobs["done"])
    note(child, 2, 1, told, b"[42]", 60_000)
    reaper = Reaper()
    reaper.add(child, crashed=True)
    reaper.run()
    assert (mail.counts(), news.counts()) == (QueueCounts(0, 1, 0, 0), QueueCounts(0, 0, 0, 0))
    (ran,) = mail.claim(5)
    assert (ran.payload, ran.attempt, ran.crashes) == ("ran", 2, 1)
    assert any_kit.client.hget(news.key("result:told"), "value") == "[42]"
    assert [report.done[-1] for report in queue_stats(["mail", "news"], minutes=1).values()] == [1, 1]
    assert [worker.id for worker in list_workers(["mail", "news"])] == [ids.this_process()]


def test_outcome_that_makes_no_sense_does_not_keep_the_others(child, any_kit):
    mail = Queue("mail")
    mail.put_many(["done", "torn"])
    jobs = begun(child, 0)
    child.board.note(b"not an outcome")
    note(child, 0, 0, jobs["done"])
    reaper = Reaper()
    reaper.add(child, crashed=True)
    reaper.run()
    assert mail.counts() == QueueCounts(0, 1, 0, 0)
    assert mail.claim()[0].payload == "torn"


def test_end_in_order_leaves_no_crash_and_a_kill_one_to_the_other_jobs(child):
    mail = Queue("mail")
    mail.put_many(["a", "b"])
    begun(child, 0)
    reaper = Reaper()
    reaper.add(child, crashed=False)
    reaper.run()
    assert reaper.due == inf
    begun(child, 0)
    child.overdue = child.board.running()[:1]
    child.board.end(0)  # the one that was too late ended while the signal was on its way
    reaper.add(child, crashed=True)
    reaper.run()
    again = [job for _ in range(2) for job in mail.claim(5, worker="other")]
    assert [(job.payload, job.attempt, job.crashes) for job in again] == [("a", 1, 0), ("b", 1, 1)]


@pytest.fixture
def ordered(twin):
    """Leave an order, by either twin."""

    class Held:
        def order(self, *args):
            return control_worker(*args)

        async def aorder(self, *args):
            return await acontrol_worker(*args)

    held = Held()
    return lambda *args: twin(held.order, *args)


def beaten(queue, worker):
    return flow.run(liveness.heartbeat(queue, worker), connections.client())


def test_order_is_taken_once_by_its_worker_on_each_of_its_queues(any_kit, ordered):
    mail, news, other = Queue("mail"), Queue("news"), Queue("other")
    for queue in (mail, news, other):
        queue.put("x")
        queue.heartbeat(worker="another")
    for queue in (mail, news):
        queue.heartbeat(worker="w")
    assert ordered("w", "quiet") is True
    assert [beaten(queue, "another").command for queue in (mail, news, other)] == ["", "", ""]
    assert [beaten(queue, "w").command for queue in (mail, news, other)] == ["quiet", "quiet", ""]
    assert [beaten(queue, "w").command for queue in (mail, news)] == ["", ""]
    ordered("w", "quiet")
    ordered("w", "stop")
    assert beaten(mail, "w").command == "stop"
    assert 0 < any_kit.client.pttl(news.key("orders")) <= 60_000


def test_order_for_nobody_is_told_and_a_wrong_one_refused(any_kit, ordered):
    Queue("mail").put("x")
    assert ordered("nobody", "stop") is False
    for arguments in (("w", "dance"), ("w", None), ("", "stop"), ("a b", "stop")):
        with pytest.raises(InvalidValue):
            ordered(*arguments)


def test_beat_tells_which_running_jobs_are_to_be_cancelled(any_kit):
    queue = Queue("mail")
    for id in ("a", "b", "c"):
        queue.put(id, id=id)
    queue.claim(2, worker="w")
    assert beaten(queue, "w").cancelled == []
    any_kit.client.hset(queue.key("cancels"), mapping={"b": 1, "c": 1, "gone": 1})
    assert beaten(queue, "w").cancelled == ["b"]
    assert beaten(queue, "w").cancelled == ["b"]
    assert beaten(queue, "other").cancelled == []


def test_worker_tells_of_its_supervisor_and_threads(any_kit):
    about = ids.information(pid=7, threads=3, supervisor="above", supervisor_pid=6)
    queue = Queue("mail")
    queue.put("x")
    queue.run_flow(liveness.heartbeat(queue, "w", about))
    queue.run_flow(liveness.heartbeat(queue, "torn", '["list"]'))
    torn, w = sorted(list_workers(["mail"]), key=lambda worker: worker.id)
    assert (w.pid, w.supervisor, w.supervisor_pid, w.threads) == (7, "above", 6, 3)
    assert (torn.host, torn.pid, torn.supervisor, torn.threads) == ("?", 0, "", 0)


def test_queue_whose_heartbeat_fails_is_logged_once_and_others_get_theirs(child, any_kit, caplog):
    beat = heartbeat(child, reports=True)
    beat.run()
    Queue("news").put(1)
    control_worker(child.worker, "quiet")
    key = Queue("mail").key("ready")
    any_kit.client.delete(Queue("mail").key("orders"))
    any_kit.client.set(key, "x")
    beat.run()
    beat.run()
    assert beat.parent.commands == ["quiet"]  # a command is executed once, and not lost
    assert list(beat.waits) == ["news"]
    assert list(beat.broken) == ["mail"]
    (line,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert f"Queue 'mail' gets no heartbeat or can't be read: The key {key!a} is a string" in line.getMessage()
    assert line.exc_info is None
    any_kit.client.delete(key)
    beat.run()
    assert beat.broken == {}


def test_log_counts_the_jobs_of_dead_workers(child, any_kit, caplog):
    mail = Queue("mail")
    beat = heartbeat(child)
    beat.run()
    for count, text in ((1, "1 job of dead workers is ready again."), (2, "2 jobs of dead workers are ready again.")):
        mail.put_many(range(count))
        assert len(mail.claim(count, worker="gone")) == count
        any_kit.client.zadd(mail.key("workers"), {"gone": 1.5})
        beat.run()
        assert f"Queue 'mail': {text}" in [record.getMessage() for record in caplog.records]
        mail.purge("ready")


def test_log_tells_what_died_with_a_child(child, any_kit, caplog):
    any_kit.options(QUEUES={"MAX_CRASHES": 1})
    Queue("mail").put_many(["a", "b"])
    ran = [job.id for job in begun(child, 0).values()]
    call = tasks.note.using(queue_name="news").enqueue("x")
    (job,) = child.sources[1].exchange(1).jobs
    child.board.begin(2, 1, job.token, job.id, None)
    reaper = Reaper()
    reaper.add(child, crashed=True)
    reaper.run()
    told = [record.getMessage() for record in caplog.records]
    assert f"Queue 'mail': 2 jobs were taken from worker dead, which died; it ran {ran[0]!a}, {ran[1]!a}." in told
    assert [Queue(name).counts() for name in ("mail", "news")] == [QueueCounts(0, 2, 0, 0), QueueCounts(0, 1, 0, 0)]
    beside = sorted([("mail", id) for id in ran] + [("news", call.id)])
    for queue, id in beside:
        assert look_up([queue], id)[1].beside == [each for each in beside if each != (queue, id)]
    for slot in range(4):
        child.board.end(slot)
    (job,) = child.sources[1].exchange(1).jobs
    child.board.begin(2, 1, job.token, job.id, None)
    reaper.add(child, crashed=True)
    reaper.run()
    text = "'poison: 1 process died in which it ran alone'"
    told = [record.getMessage() for record in caplog.records]
    assert f"Job {call.id!a} of queue 'news' (tests.queues.support.tasks.note) is dead: {text}" in told


def test_jobs_are_named_that_were_taken_and_no_others(child, any_kit, caplog):
    handle = tasks.note.using(queue_name="mail").enqueue("late")
    Queue("mail").put_many(["done", "ran"], priority=-1)
    jobs = child.sources[0].exchange(10).jobs
    for slot, job in enumerate(jobs):
        child.board.begin(slot, 0, job.token, job.id, None)
    late, done, ran = jobs
    assert late.id == handle.id
    child.overdue = child.board.running()[:1]
    child.board.note(Ack(0, done.token.encode(), done.id.encode()).pack())  # its slot was not yet free
    reaper = Reaper()
    reaper.add(child, crashed=True)
    reaper.run()
    (told,) = [record.getMessage() for record in caplog.records if "taken from" in record.getMessage()]
    assert told == f"Queue 'mail': 1 job was taken from worker dead, which died; it ran {ran.id!a}."


def test_child_whose_queue_can_not_be_read_is_told_of_in_one_line(child, any_kit, caplog):
    any_kit.client.set(Queue("mail").key("ready"), "x")
    reaper = Reaper()
    reaper.add(child, crashed=True)
    reaper.run()
    (line,) = [record for record in caplog.records if "stay until its lease expires: The key" in record.getMessage()]
    assert line.exc_info is None


WAITS = {
    "seconds": 100,
    "sequence": [100, 200],
    "function": lambda error, result: 100 * (result.attempts + len(result.errors) - 1),
}


@pytest.mark.parametrize("backoff", WAITS.values(), ids=WAITS)
def test_job_whose_process_was_killed_waits_as_long_as_its_task_says(child, any_kit, backoff):
    handle = remade(backoff).enqueue("x")
    kill_for_its_timeout(child)
    (job,) = Queue("mail").peek(state="scheduled")
    assert 90 < job.due - any_kit.client.time()[0] <= 101
    handle.refresh()
    assert (handle.status, [error.exception_class for error in handle.errors]) == ("READY", [TaskTimeout])


def test_backoff_may_give_up_a_job_whose_process_was_killed(child, any_kit):
    asked, told = [], []
    handle = remade(lambda error, result: asked.append((type(error), result.attempts))).enqueue("x")
    framework.task_finished.connect(heard := lambda task_result, **_: told.append(task_result.status))
    framework.task_started.connect(heard)
    try:
        kill_for_its_timeout(child)
    finally:
        framework.task_finished.disconnect(heard)
        framework.task_started.disconnect(heard)
    assert asked == [(TaskTimeout, 1)]
    assert told == ["FAILED"]  # its start was told by the process that ran it
    (dead,) = Queue("mail").peek(state="dead")
    assert dead.reason == f"TaskTimeout: {tasks.note.module_path} ran for more than 300.0 s"
    handle.refresh()
    assert handle.status == "FAILED"


def remade(backoff):
    """Let a task have a backoff and the queue ``mail``; what finds it by its name gets this one."""
    return task(queue_name="mail", backoff=backoff, max_attempts=3)(tasks.note.func)


def kill_for_its_timeout(child):
    (job,) = child.sources[0].exchange(1).jobs
    child.board.begin(0, 0, job.token, job.id, 0.0)
    child.overdue = child.board.running()
    reaper = Reaper()
    reaper.add(child, crashed=True)
    reaper.run()


@pytest.fixture(autouse=True)
def same_tasks():
    """Leave the task of the module registered."""
    yield
    registry.register(tasks.note)


def test_signal_to_stop_cuts_no_receiver_and_ends_the_next_call(kit):
    done = []

    async def never():
        raise AssertionError

    def receive():
        done.append("begun")
        os.kill(os.getpid(), signal.SIGTERM)
        sleep(0.05)
        done.append("ended")

    def steps(queue):
        done.append((yield Call("PING")))
        yield LocalCall(receive, never)
        try:
            yield Call("PING")
        except Interrupted:
            done.append("interrupted")
            raise

    with Signals(lambda: None) as signals:
        queue = SupervisedQueue("mail", worker="w", about="", call=signals.call)
        with pytest.raises(Interrupted):
            queue.run_flow(steps(queue))
    assert done == [b"PONG", "begun", "ended", "interrupted"]


def test_errors_of_calls_reach_the_flow(kit):
    def steps():
        try:
            yield Call("NOSUCHCOMMAND")
        except Exception as error:
            return type(error).__name__, (yield Call("PING"))

    queue = SupervisedQueue("mail", worker="w", about="")
    assert queue.run_flow(steps()) == ("CommandFailed", b"PONG")
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    with pytest.raises(RedisUnavailable):
        queue.run_flow(iter_of(Call("PING")))


def iter_of(step):
    return (yield step)


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        *(([], ""), ([""], ""), (["a"], "'a'"), (["a\n", "b"], "'a\\n', 'b'"), (["a", ""], "'a' and 1 more")),
        (list("abcdefg"), "'a', 'b', 'c', 'd', 'e' and 2 more"),
    ],
)
def test_five_jobs_are_named_and_the_others_counted(ids, words):
    assert named(ids) == words
