"""A queue in several shards: one queue to its callers, several slots on the server."""

import contextlib
import json
from datetime import timedelta

import pytest

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError, InvalidName, InvalidValue, RedisUnavailable
from redis_kit.queues import LeaseLost, Queue, QueueCounts, signals, task
from redis_kit.queues.engine import ids
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.inspection import list_workers, queue_counts, queue_names, queue_stats
from redis_kit.queues.limits import list_limits, set_limit
from redis_kit.queues.models import OutboxMessage
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.enqueue import Enqueuer
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from redis_kit.testing.jobs import drain
from tests.fixtures.kit import Kit
from tests.fixtures.process import wait_for
from tests.queues.support.in_process import working
from tests.queues.support.tasks import fail, remember

BACKEND = {"BACKEND": "redis_kit.queues.backend.RedisTaskBackend", "QUEUES": []}


NAMES = ("mail", "mail#02", "mail#01", "mail#03")
SHARDS = {"mail": {"SHARDS": 4}}


@pytest.fixture(autouse=True)
def any_queue(settings, monkeypatch):
    """Tasks may be enqueued to any queue, and those that a test makes are gone after it."""
    settings.TASKS = {"default": BACKEND}
    monkeypatch.setattr(registry, "_tasks", {**registry._tasks})


@pytest.fixture(params=["valkey", "cluster"])
def sharded(request, settings):
    """The kit with a queue in four shards, on one server and on a Cluster."""
    with contextlib.closing(Kit(request.getfixturevalue(request.param), settings)) as kit:
        kit.options(QUEUES={"QUEUE_OPTIONS": SHARDS})
        yield kit


@pytest.fixture
def queue(sharded):
    return Queue("mail")


@pytest.fixture
def one_server(kit):
    kit.options(QUEUES={"QUEUE_OPTIONS": SHARDS})
    return kit


def reshard(kit, count):
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"SHARDS": count}}})


def sizes():
    """Return how many ready jobs each shard has."""
    return [Queue(name).counts().ready for name in NAMES]


def end_all(queue):
    """Claim and acknowledge all jobs; return them."""
    ended = []
    while jobs := queue.claim(10):
        queue.ack(*jobs)
        ended += jobs
    return ended


def test_jobs_are_spread_and_each_is_claimed_once(queue, twin):
    ids = [twin(queue.put, number) for number in range(40)] + twin(queue.put_many, range(40, 100))
    assert len(set(ids)) == 100
    assert all(size > 15 for size in sizes())
    jobs = twin(queue.claim, 60)
    assert (len(jobs), twin(queue.counts)) == (60, QueueCounts(0, 40, 60, 0))
    rest = twin(queue.claim, 100, done=jobs)
    twin(queue.ack, *rest)
    assert sorted(job.payload for job in jobs + rest) == list(range(100))
    assert twin(queue.counts) == QueueCounts(0, 0, 0, 0)
    with pytest.raises(LeaseLost):
        twin(queue.ack, jobs[0]._replace(token=rest[0].token))


def test_shards_are_on_all_nodes_of_a_cluster(cluster):
    for count, least in ((4, 2), (8, 3), (16, 3)):
        for name in ("mail", "default", "a", "b"):
            tags = [name, *(f"{name}#{number}" for number in ("02", "01", "03", "40", "42", "41", "43"))][:count]
            assert len({cluster.owner(f"rk:{{queues:{tag}}}:").port for tag in tags}) >= least


def test_name_of_a_shard_is_refused(one_server, twin):
    for call in (Queue("mail#02").put, Queue("rare#40").put_many):
        with pytest.raises(InvalidName, match="is the name of a shard of the queue"):
            twin(call, [1])
    with pytest.raises(InvalidName, match="Write 'mail'"):
        remember.using(queue_name="mail#02")
    assert queue_names() == ["default"]


def test_order_holds_within_a_shard(one_server):
    queue = Queue("mail")
    queue.put_many(range(40))
    queue.put("urgent", priority=5)
    by_shard = {}
    for job in end_all(queue):
        by_shard.setdefault(job.shard, []).append(job.payload)
    assert set(by_shard) == set(NAMES)
    for payloads in by_shard.values():
        urgent, rest = [each for each in payloads if each == "urgent"], [each for each in payloads if each != "urgent"]
        assert payloads == urgent + sorted(rest)


def test_job_is_found_by_its_id(queue, twin):
    id, own = twin(queue.put, 1), twin(queue.put, 2, id="my-own")
    dotted = twin(queue.put, 3, id="a.mail")  # as if it named the first shard
    assert spread().names("mail").count(ids.queue_of(id)) == 1
    for each, payload in ((id, 1), (own, 2), (dotted, 3)):
        assert twin(queue.get, each).payload == payload
        assert twin(queue.delete, each)
        assert (twin(queue.get, each), twin(queue.delete, each)) == (None, False)
    later = twin(queue.put, 4, delay=60)
    assert twin(queue.run_now, later)
    assert not twin(queue.run_now, own)


def test_job_is_cancelled_by_its_id(queue, twin, shell):
    pytest.importorskip("redis_kit.queues.features.cancel")
    id, own, third = twin(queue.put, 1), twin(queue.put, 2, id="my-own"), twin(queue.put, 3)
    for each in (id, own):
        assert twin(queue.cancel, each)
        assert not twin(queue.cancel, each)
    assert shell("rk_cancel", third)[0] == 0
    assert twin(queue.counts) == QueueCounts(0, 0, 0, 0)


def test_id_that_the_kit_chose_costs_one_command(one_server, commands):
    queue = Queue("mail")
    queue.put_many(range(4))  # registers all shards
    with commands(one_server) as sent:
        assert queue.delete(queue.put(1))
        assert queue.put_many([2])
    assert sent == ["EVALSHA"] * 3


def test_unique_key_and_own_id_are_unique_in_the_whole_queue(queue, twin):
    pytest.importorskip("redis_kit.queues.features.unique")
    first = [twin(queue.put, number, unique=f"key{number}") for number in range(8)]
    again = [twin(queue.put, "new", unique=f"key{number}", replace=number == 7) for number in range(8)]
    assert first == again
    for _ in range(2):
        twin(queue.put, "own", id="own")
    assert sorted(map(str, (job.payload for job in end_all(queue)))) == [*map(str, range(7)), "new", "own"]


def test_jobs_of_a_group_keep_their_order_and_its_limit(sharded, twin):
    pytest.importorskip("redis_kit.queues.features.limits")
    options = {"SHARDS": 4, "GROUP_CONCURRENCY": 1}
    sharded.options(QUEUES={"QUEUE_OPTIONS": {"mail": options}})
    queue, groups = Queue("mail"), [f"tenant:{number}" for number in range(6)]
    for number in range(4):
        for name in groups:
            twin(queue.put, [name, number], group=name)
    assert len({spread().place("mail", id=name) for name in groups}) > 1
    for number in range(4):
        jobs = twin(queue.claim, 100)
        assert sorted(job.payload for job in jobs) == [[name, number] for name in groups]
        twin(queue.ack, *jobs)
    assert sum(info.running for info in list_limits("mail")) == 0
    set_limit("mail", "group=*", concurrency=2)
    twin(queue.put_many, range(4), group="tenant:1")
    assert len(twin(queue.claim, 100)) == 2
    (info,) = [info for info in list_limits("mail") if info.name == "group=*"]
    assert (info.concurrency, info.changed) == (2, True)


def test_limit_that_no_shard_can_keep_is_refused(one_server):
    pytest.importorskip("redis_kit.queues.features.limits")
    for option, value in (("CONCURRENCY", 3), ("RATE", "5/s")):
        one_server.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"SHARDS": 4, option: value}}})
        (problem,) = conf.problems(QueueSettings)
        assert f"['mail']['{option}'] can't be used with SHARDS" in problem.message
        assert f"GROUP_{option}" in problem.hint
    one_server.options(QUEUES={"QUEUE_OPTIONS": SHARDS})
    with pytest.raises(InvalidValue, match="only its groups and tasks"):
        set_limit("mail", "queue", concurrency=1)
    limited = task(concurrency=2)(remember.func)
    with pytest.raises(ConfigurationError, match=r"several limits: group=a, task=.*\. With SHARDS it can have one"):
        limited.using(queue_name="mail", group="a").enqueue(1)
    assert queue_counts(["mail"])["mail"] == QueueCounts(0, 0, 0, 0)


def test_states_are_read_and_changed_in_all_shards(queue, twin):
    twin(queue.put_many, range(20))
    twin(queue.put_many, range(20, 28), delay=60)
    dues = [job.due for job in twin(queue.peek, 100, state="scheduled")]
    assert (len(dues), dues) == (8, sorted(dues))
    jobs = twin(queue.claim, 12)
    for job in jobs[:9]:
        assert twin(queue.nack, job, max_attempts=1, error="ValueError: no") == "dead"
    assert twin(queue.counts) == QueueCounts(8, 8, 3, 9)
    died = [job.died for job in twin(queue.peek, 5, state="dead")]
    assert (len(died), died) == (5, sorted(died, reverse=True))
    assert twin(queue.requeue, limit=2) == 2
    assert twin(queue.requeue, [jobs[0].id, jobs[1].id, "gone"]) <= 2
    assert twin(queue.requeue, error="ValueError", limit=1) == 1
    left = twin(queue.counts).dead
    assert twin(queue.purge, "dead") == left > 0
    assert twin(queue.purge, "scheduled") == 8
    assert twin(queue.heartbeat) == 0
    assert twin(queue.sign_off) == 3
    assert len(twin(queue.claim, 100)) == twin(queue.counts).running


def test_all_shards_are_paused(queue, twin):
    pytest.importorskip("redis_kit.queues.features.pause")
    twin(queue.put_many, range(8))
    twin(queue.pause, 60)
    assert twin(queue.paused).ends_in == pytest.approx(60, abs=5)
    assert twin(queue.claim, 10) == []
    assert twin(queue.resume)
    assert not twin(queue.resume)
    assert len(twin(queue.claim, 100)) == 8


def test_reports_show_one_queue(one_server, shell):
    queue = Queue("mail")
    queue.put_many(range(20))
    queue.nack(queue.claim()[0], max_attempts=1, error="Oops: x")
    assert queue_names().count("mail") == 1
    assert not [name for name in queue_names() if "#" in name]
    report = queue_stats(["mail"])["mail"]
    assert (report.counts, report.shards, sum(report.begun)) == (QueueCounts(0, 19, 0, 1), 4, 1)
    assert [worker.queues for worker in list_workers(["mail"])] == [("mail",)]
    (shown,) = json.loads(shell("rk_queues", "mail", "--json")[1])
    assert (shown["ready"], shown["shards"]) == (19, 4)
    assert "Shards: mail: 4" in shell("rk_queues")[1]
    listed = json.loads(shell("rk_jobs", "mail", "--json")[1])
    assert (len(listed), {row["queue"] for row in listed}) == (20, {"mail"})
    assert json.loads(shell("rk_retry", "mail", "--error", "Oops", "--json")[1]) == {"queue": "mail", "retried": 1}
    assert shell("rk_purge", "mail", "--state", "ready", "--no-input")[0] == 0
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_tasks_of_a_queue_with_shards_run_in_a_worker(sharded):
    heard = []
    signals.job_started.connect(lambda queue, **_: heard.append(queue), weak=False, dispatch_uid="shards")
    try:
        results = [remember.using(queue_name="mail").enqueue(number) for number in range(30)]
        worker = WorkerProcess(Options(("mail", "other"), threads=2))
        assert len(worker.sources) == 5
        with working(worker):
            for number, result in enumerate(results):
                assert result.wait_until_finished(20)
                assert (result.return_value, result.queue_name) == (number, "mail")
            (info,) = list_workers(["mail", "other"])
            assert info.queues == ("mail", "other")
    finally:
        signals.job_started.disconnect(dispatch_uid="shards")
    assert heard == ["mail"] * 30
    assert Queue("mail").counts() == QueueCounts(0, 0, 0, 0)


def test_drain_runs_the_jobs_of_all_shards(one_server):
    for _ in range(12):
        remember.using(queue_name="mail").enqueue(1)
    failed = fail.using(queue_name="mail").enqueue("no")
    assert drain("mail") == 13
    assert len(failed.errors) == 0
    failed.refresh()
    assert len(failed.errors) == 1


def test_workflow_crosses_shards(sharded):
    parts = pytest.importorskip("redis_kit.queues.features.workflows.parts")
    step = remember.using(queue_name="mail")
    flow = parts.chain(parts.group(*(step.step(number) for number in range(8))), step.step(40)).enqueue()
    with working(WorkerProcess(Options(("mail",), threads=2))):
        assert flow.wait_until_finished(20)
    assert flow.status().state == "successful"


def test_raised_number_of_shards_finds_older_jobs(sharded):
    sharded.options(QUEUES={})
    queue, task = Queue("mail"), remember.using(queue_name="mail")
    id, result = queue.put(1), task.enqueue(5)
    sharded.options(QUEUES={"QUEUE_OPTIONS": SHARDS})
    assert queue.get(id).payload == 1
    assert queue.delete(id)
    assert drain("mail") == 1
    result.refresh()
    assert result.return_value == 5


def test_lowered_number_of_shards_leaves_no_job_behind(sharded):
    queue = Queue("mail")
    results = [remember.using(queue_name="mail").enqueue(number) for number in range(20)]
    queue.put_many(range(20))
    for count in (2, 1):
        reshard(sharded, count)
        assert queue.counts().ready == 40
        assert queue_stats(["mail"])["mail"].shards == 4
        before = sizes()
        added = [queue.put("new") for _ in range(10)]
        assert sizes()[count:] == before[count:]
        assert all(map(queue.delete, added))
        assert set(spread().older(["mail"])) == set(NAMES[count:])
    for job in queue.peek(1000):
        if job.id not in {result.id for result in results}:
            queue.delete(job.id)
    with working(WorkerProcess(Options(("mail",), threads=2, older_shards=tuple(spread().older(["mail"]))))):
        assert all(result.wait_until_finished(20) for result in results)
    assert [result.return_value for result in results] == list(range(20))
    reshard(sharded, 1)
    # Shards in which jobs began a moment ago are not forgotten yet; chance may leave one without any of the 20 tasks.
    assert set(spread().older(["mail"])) == {ids.queue_of(result.id) for result in results} - {"mail"}
    assert end_all(queue) == []


def test_claim_finds_what_is_left_in_older_shards(sharded):
    queue = Queue("mail")
    queue.put_many(range(20))
    reshard(sharded, 1)
    assert sorted(job.payload for job in end_all(queue)) == list(range(20))


def test_shard_that_was_empty_for_a_day_is_forgotten(one_server):
    queue = Queue("mail")
    for id in queue.put_many(range(8)):
        queue.delete(id)
    sharded = queue_stats(["mail"])["mail"].shards
    reshard(one_server, 1)
    assert (sharded, spread().older(["mail"])) == (4, [])
    assert queue_stats(["mail"])["mail"].shards == 1


def test_queue_without_shards_has_the_keys_that_it_always_had(kit):
    one, plain = Queue("mail"), Queue("other")
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"SHARDS": 1}}})
    for queue in (one, plain):
        queue.put(1)
        assert "." not in queue.peek()[0].id
    assert {key.replace("other", "mail") for key in kit.keys() if "other" in key} == {
        key for key in kit.keys() if "mail" in key
    }
    assert kit.client.smembers(f"{kit.prefix}:{{queues}}:names") == {"mail", "other"}


def test_worker_process_runs_what_is_left_in_older_shards(one_server, start_worker, journal):
    results = []
    while not all(sizes()):
        results.append(remember.using(queue_name="mail").enqueue(len(results)))
    reshard(one_server, 1)
    worker = start_worker("--queue-name", "mail", "--burst")
    assert wait_for(lambda: worker.poll() is not None, timeout=30)
    assert b"what is left in shards that get no more jobs: mail#01, mail#02, mail#03" in worker.log.read_bytes()
    for result in results:
        result.refresh()
        assert result.is_finished


@pytest.mark.django_db
def test_schedules_add_jobs_to_a_shard_of_their_own(one_server):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    control = pytest.importorskip("redis_kit.queues.features.schedules.control")
    from tests.queues.support.scheduled import declared, due_now, scheduler, states, tick

    for number in range(8):
        declared(remember.module_path, f"every-{number}", every=3600, queue="mail", args=[number])
    supervisor = scheduler()
    tick(supervisor)
    for number in range(8):
        due_now(one_server, f"every-{number}")
    tick(supervisor)
    assert sum(size > 0 for size in sizes()) > 1
    assert {state.queue for state in states().values()} == {"mail"}
    with pytest.raises(InvalidValue, match="has not ended"):  # so the job of the tick is in the same shard
        control.run("every-3")
    assert drain("mail") == 8
    assert control.run("every-3")[0] == "mail"
    assert drain("mail") == 1
    found = pytest.importorskip("redis_kit.queues.features.schedules.inspection")
    assert set(found.outcomes(found.listed().schedules).values()) == {"SUCCESSFUL"}


@pytest.mark.django_db(transaction=True)
def test_call_in_the_outbox_names_its_shard(one_server, monkeypatch):
    relays = pytest.importorskip("redis_kit.queues.features.outbox.relay")
    stored = task(outbox=True)(remember.func)
    monkeypatch.setattr(relays, "SETTLED", timedelta(seconds=-1))
    with monkeypatch.context() as patch:
        patch.setattr(Enqueuer, "add", lambda self, new, calls, **more: [RedisUnavailable("away") for _ in new])
        results = [stored.using(queue_name="mail").enqueue(number) for number in range(8)]
    assert set(OutboxMessage.objects.values_list("queue", flat=True)) <= set(NAMES)
    reshard(one_server, 2)
    assert relays.relay("default").sent == 8
    reshard(one_server, 4)
    assert drain("mail") == 8
    for number, result in enumerate(results):
        result.refresh()
        assert result.return_value == number
