"""Workers of Celery and of the kit side by side, as processes of their own."""

import json
import signal
from collections import Counter
from functools import partial
from itertools import accumulate
from threading import Event, Thread

import pytest

from redis_kit.queues import NotTaken, Queue, QueueCounts, limits
from redis_kit.queues.engine.ids import part_of
from redis_kit.queues.features.celery import fleet as celery_fleet
from redis_kit.queues.features.celery.broker import Publisher
from redis_kit.queues.features.celery.stored_message import TaskCall
from redis_kit.queues.features.celery.tasks import stops
from redis_kit.queues.inspection import hand_overs
from redis_kit.queues.reports.lookup import look_up
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.testing.jobs import drain
from tests.chaos.queues.handovers import messages
from tests.fixtures.process import wait_for
from tests.queues.support import fleet, tasks

pytestmark = [pytest.mark.once, pytest.mark.alone(20), pytest.mark.usefixtures("rabbitmq_soon")]
BACKEND = "redis_kit.queues.celery.CeleryTaskBackend"
# The broker delivers what is not acknowledged within a second again, and looks for it all the time.
SHORT = json.dumps({"visibility_timeout": 1, "unacked_restore_interval": 0.3, "unacked_restore_throttle": 1})


def overlaps(lines):
    """Return the steps of runs that overlap."""
    running, wrong = 0, []
    for line in lines:
        running += 1 if line.step == "begin" else -1
        if running > 1:
            wrong.append(line)
    return wrong


def test_work_of_a_fleet(project, journal, settings, monkeypatch):
    monkeypatch.setenv("TASK_BACKEND", BACKEND)
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": []}}
    project.start_celery("--pool", "threads", "--concurrency", "8", CELERY_OPTIONS=SHORT)
    project.start_worker()

    fleet.plain.apply_async(("plain",), countdown=4)
    kept = fleet.delayed.apply_async(("kept",), countdown=4)
    fleet.delayed.apply_async(("cancelled",), countdown=2, key="1")
    assert fleet.delayed.cancel("1")
    fleet.delayed.apply_async(("early",), countdown=2, key="2")
    fleet.delayed.apply_async(("moved",), countdown=3, key="2")
    fleet.retried.delay("retried")
    for _ in range(3):
        fleet.alone.delay("alone", 2.5)
    note, failing = tasks.note.enqueue("note"), tasks.fail.enqueue("no")
    coroutine, slow, talking = tasks.remember_async.enqueue(7), tasks.hang.enqueue(), tasks.log_text.enqueue("hello")

    wait_for(lambda: len(journal.lines(name="plain")) > 1, timeout=30)
    wait_for(lambda: journal.lines(name="kept") and journal.lines(name="moved"), timeout=30)
    assert [line.step for line in journal.lines(name="kept")] == [f"id:{kept.id}"]
    assert not journal.lines(name="cancelled") + journal.lines(name="early")
    assert len(journal.lines(name="moved")) == 1

    wait_for(lambda: len(journal.lines(name="retried")) == 2, timeout=30)
    assert [line.step for line in journal.lines(name="retried")] == ["try0", "try1"]

    wait_for(lambda: journal.lines(name="alone", step="end"), timeout=30)
    assert not overlaps(journal.lines(name="alone"))
    assert len(journal.lines(name="alone", step="end")) == 1

    assert note.wait_until_finished(10)
    assert (note.status, note.attempts) == ("SUCCESSFUL", 1)
    assert len(journal.lines(name="note", step="end")) == 1
    assert coroutine.wait_until_finished(10)
    assert coroutine.return_value == 7
    assert slow.wait_until_finished(10)
    assert slow.errors[-1].exception_class_path.endswith("TaskTimeout")
    wait_for(lambda: b"hello" in b"".join(look_up(["default"], talking.id)[1].extras["logs"]))
    failing.refresh()
    assert (failing.status, failing.attempts) == ("READY", 1)  # it is retried later
    assert Queue("default").run_now(failing.id)
    assert failing.wait_until_finished(10)
    assert (failing.status, failing.attempts, len(failing.errors)) == ("FAILED", 2, 2)
    wait_for(lambda: Queue("celery").counts() == QueueCounts(0, 0, 0, 0))


def most_at_once(lines):
    """Return how many runs there were at once."""
    return max(accumulate(1 if line.step == "begin" else -1 for line in lines))


def test_limits_and_fair_share_hold_on_a_fleet(project, journal, settings, monkeypatch):
    pytest.importorskip("redis_kit.queues.features.pause")
    monkeypatch.setenv("TASK_BACKEND", BACKEND)
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": []}}
    project.options(QUEUE_OPTIONS={"shared": {"SINK": "celery", "GROUP_CONCURRENCY": 1, "CONCURRENCY": 3}})
    project.start_celery("--pool", "threads", "--concurrency", "8")
    project.start_worker("--queue-name", "default,shared")
    tasks.note.enqueue("first")  # both have imported everything before the starts of others are compared
    wait_for(lambda: journal.lines(name="first"), timeout=30)
    for number in range(8):
        tasks.note_in_twos.enqueue(f"two{number}", 0.1)
        tasks.note_at_a_rate.enqueue(f"rate{number}")
    Queue("shared").pause()  # until all are there
    for group in "aaaaaabbc":
        tasks.note_slowly.using(queue_name="shared", group=group).enqueue(f"group-{group}", 0.3)
    Queue("shared").resume()
    wait_for(lambda: len(journal.lines(step="end")) == 26, timeout=30)
    lines = journal.lines()
    assert most_at_once([line for line in lines if line.name.startswith("two")]) == 2
    starts = [line.at for line in lines if line.name.startswith("rate")]
    assert starts[-1] - starts[0] > 1.0  # 1.4 s on a quiet machine
    for group in "abc":
        assert most_at_once(journal.lines(name=f"group-{group}")) == 1
    groups = [line.name for line in lines if line.name.startswith("group") and line.step == "begin"]
    assert set(groups[:3]) == {"group-a", "group-b", "group-c"}
    wait_for(lambda: all(not any(Queue(name).counts()) for name in ("default", "shared")))
    assert [limit.running for name in ("default", "shared") for limit in limits.list_limits(name)] == [0, 0, 0, 0]


def test_jobs_of_all_shards_run_on_a_fleet_and_come_back_to_their_shard(project, journal):
    project.options(QUEUE_OPTIONS={"spread": {"SINK": "celery", "SHARDS": 4}, "celery": {"SHARDS": 2}})
    for number in range(4):
        fleet.delayed.apply_async((f"delayed{number}",), countdown=1.5)
    fleet.delayed.apply_async(("cancelled",), countdown=1.5, key="1")
    assert fleet.delayed.cancel("1")
    results = [tasks.note.using(queue_name="spread").enqueue(f"note{number}") for number in range(12)]
    failing = tasks.fail.using(queue_name="spread").enqueue("no")
    assert len({part_of("spread", result.id) for result in results}) > 1
    project.start_celery("--pool", "threads", "--concurrency", "4")
    project.start_worker("--queue-name", "celery,spread")
    for result in results:
        assert result.wait_until_finished(30)
        assert (result.status, result.attempts) == ("SUCCESSFUL", 1)
    wait_for(lambda: all(journal.lines(name=f"delayed{number}") for number in range(4)), timeout=30)
    wait_for(lambda: Queue("spread").counts() == QueueCounts(1, 0, 0, 0))  # the one that failed is retried later
    assert Queue("spread").get(failing.id).attempts == 1
    assert Queue("spread").run_now(failing.id)
    assert failing.wait_until_finished(10)
    assert (failing.status, failing.attempts) == ("FAILED", 2)
    wait_for(lambda: Queue("celery").counts() == QueueCounts(0, 0, 0, 0))
    names = [line.name for line in journal.lines(step="end")]
    assert sorted(names) == sorted(f"note{number}" for number in range(12))
    assert not journal.lines(name="cancelled")
    wait_for(lambda: hand_overs(["spread"])["spread"].sent == 14)


def test_pool_whose_tasks_can_not_be_interrupted_is_logged(kit, monkeypatch, caplog):
    monkeypatch.setattr(celery_fleet, "get_ident", lambda: -1)  # as gevent's greenlets have it
    celery_fleet.Fleet(stops).close()
    assert "don't interrupt tasks in this pool" in caplog.text


def test_job_that_begins_while_its_worker_signs_off_runs_to_its_end(project, journal, settings, monkeypatch, tmp_path):
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": []}}
    project.options(HEARTBEAT_INTERVAL=0.05)
    monkeypatch.setattr(celery_fleet, "IDLE", 0.0)
    monkeypatch.setenv("JOURNAL", str(journal.path))
    path, signed_off, sign_off = tmp_path / "go on", Event(), WorkerQueue.sign_off
    first, second = tasks.note.enqueue("first"), tasks.wait_for_file.enqueue("second", str(path))
    assert drain() == 2
    worker = celery_fleet.Fleet(stops)
    calls = {message.headers["id"]: partial(worker.run, *message.args) for message in project.sent()}
    runs = Thread(target=calls[second.id])

    def begin_and_sign_off(source, **options):
        if not runs.ident:
            runs.start()
            wait_for(lambda: journal.lines(name="second"))
            sign_off(source, **options)
            signed_off.set()

    monkeypatch.setattr(WorkerQueue, "sign_off", begin_and_sign_off)
    calls[first.id]()
    assert signed_off.wait(10)
    path.touch()
    runs.join(10)
    worker.close()
    second.refresh()
    assert (second.status, second.attempts) == ("SUCCESSFUL", 1)
    assert not any(Queue("default").counts())


def test_job_has_heartbeats_although_their_thread_could_not_start_before(project, journal, settings, monkeypatch):
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": []}}
    project.options(HEARTBEAT_INTERVAL=0.05)
    monkeypatch.setenv("JOURNAL", str(journal.path))
    result = tasks.note.enqueue("first")
    assert drain() == 1
    (message,) = project.sent()
    worker, started = celery_fleet.Fleet(stops), []

    def start_thread(name, work):
        started.append(name)
        if len(started) == 1:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(celery_fleet, "start_thread", start_thread)
    with pytest.raises(RuntimeError):
        worker.run(*message.args)
    worker.run(*message.args)
    worker.close()
    result.refresh()
    assert result.status == "SUCCESSFUL"
    assert started == ["celery"] * 2
    assert not +worker._running


def test_rabbitmq_confirms_messages_and_a_frozen_one_loses_none(project, journal, rabbitmq, monkeypatch):
    monkeypatch.setenv("BROKER_TIMEOUT", "1")
    project.connect(rabbitmq.url)
    project.start_celery("--pool", "threads", "--concurrency", "2")
    worker = project.start_worker()
    first = fleet.delayed.apply_async(("first",), countdown=1.1)
    wait_for(lambda: journal.lines(name="first"), timeout=30)
    assert [line.step for line in journal.lines(name="first")] == [f"id:{first.id}"]
    rabbitmq.signal(signal.SIGSTOP)
    try:
        fleet.delayed.apply_async(("frozen",), countdown=1.1)
        wait_for(lambda: b"does not take jobs" in worker.log.read_bytes(), timeout=30)
        assert not journal.lines(name="frozen")
    finally:
        rabbitmq.signal(signal.SIGCONT)
    wait_for(lambda: b"takes jobs again" in worker.log.read_bytes(), timeout=60)
    wait_for(lambda: journal.lines(name="frozen"), timeout=30)
    wait_for(lambda: Queue("celery").counts() == QueueCounts(0, 0, 0, 0))


def test_rabbitmq_takes_or_refuses_each_message_of_a_batch(project, rabbitmq):
    project.connect(rabbitmq.url)
    sender = Publisher(fleet.app)
    calls = [TaskCall("a", [number], {}, f"n{number}", {}) for number in range(9)]
    calls[4] = calls[4]._replace(options={"exchange": "not there", "routing_key": "x"})
    answers = sender.publish_many(calls)
    assert [place for place, answer in enumerate(answers) if answer] == [4]
    assert isinstance(answers[4], NotTaken)
    assert not answers[4].unavailable
    assert sender.publish_many(calls[:3]) == [None] * 3
    sender.close()
    sent = messages(rabbitmq.url)
    assert sent == Counter({call.id: 2 if place < 3 else 1 for place, call in enumerate(calls) if place != 4})


def test_event_that_a_message_was_sent_is_confirmed_beside_it(project, rabbitmq, monkeypatch):
    monkeypatch.setitem(fleet.app.conf, "task_send_sent_event", True)
    project.connect(rabbitmq.url)
    sender = Publisher(fleet.app)
    assert sender.publish_many([TaskCall("a", [number], {}, f"e{number}", {}) for number in range(5)]) == [None] * 5
    sender.close()
    assert messages(rabbitmq.url).total() == 5
