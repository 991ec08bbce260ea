"""Values of the right type that make no sense, in every key of a queue: no call fails but by an error of the kit."""

import asyncio
import contextlib
import random

import pytest
import redis

from redis_kit.core.errors import KeyConflict
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.queues import LeaseLost, Queue, QueueCounts
from redis_kit.queues.backend import RedisTaskBackend
from redis_kit.queues.engine import calls as moves
from redis_kit.queues.errors import CorruptMessage
from redis_kit.queues.inspection import alist_workers, control_worker, list_workers
from redis_kit.queues.reports import workers
from redis_kit.queues.reports.stats import queue_counts
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.testing.jobs import drain
from tests.queues.support.duties import sweep
from tests.queues.support.every_call import calls
from tests.queues.support.tasks import note, remember

pytestmark = pytest.mark.once

ROUNDS = 80
TEXTS = [
    b"",
    b"x",
    b"-1",
    b"1 2 3",
    b"0 0 0 5\n{}",
    b"nan",
    b"inf",
    b"9" * 40,
    b"a/b/c/d",
    b"\xff\x00",
    b"{",
    b"1.5 {}",
    b"w/c.1/nan/x",
    b"w/c.1/inf/x",
    b"w/c.1/0x1/x",
    b"gone/c.1/nan/x",
    b"- group=a",
    b"9999999999999999 group=b",
    b"job\ngroup=a\nx\ny",
    b"run\n",
    b"turn\ngroup=a\n0000000000000000\ngroup=b",
    b"todo\nlane group=a",
    b"lane group=a",
    b"set group=*",
    b"ready 1 x ",
    b"timed inf x group=a",
    b"nan inf x",
    b"0 5 x",
]
NUMBERS = ["inf", "-inf", "1e300", "-5", "0.5", "253402300799000", "9007199254740993"]
HASHES = ("jobs", "info", "minutes", "reasons", "orders", "cancels", "result:x", "lanes", "limits", "lost")
ZSETS = ("ready", "scheduled", "running", "dead", "workers", "repeats", "parked", "turns")


@pytest.fixture
def raw(kit):
    """A client that leaves bytes as they are."""
    with contextlib.closing(redis.Redis.from_url(kit.url)) as client:
        yield client


def damage(raw, queue, randomness):
    """Write a few values into a few keys, as nobody but an enemy would."""
    there = [*raw.hkeys(queue.key("jobs")), *raw.zrange(queue.key("workers"), 0, -1)]
    known = [b"x", b"w", b"w/until", b"\xff/", b"", *there]
    for part in randomness.sample(HASHES, 3):
        raw.hset(queue.key(part), randomness.choice([*known, *TEXTS]), randomness.choice(TEXTS))
    for part in randomness.sample(ZSETS, 3):
        score, member = randomness.choice(NUMBERS), randomness.choice([*known, *TEXTS])
        raw.execute_command("ZADD", queue.key(part), score, member)
    for part in randomness.sample(("sequence", "paused"), randomness.randrange(2)):
        raw.set(queue.key(part), randomness.choice(TEXTS), px=randomness.choice([None, 20]))
    if randomness.random() < 0.2:
        raw.rpush(queue.key("signal"), b"\xff")


# With the first seed another program's member comes after the jobs of a group.
@pytest.mark.parametrize("seed", [96372, None], ids=["stranger", "random"])
def test_values_that_make_no_sense_fail_nowhere_or_as_a_conflict(kit, raw, seed):
    seed = seed or random.randrange(10**6)
    print(f"seed {seed}")
    randomness = random.Random(seed)
    kit.options(QUEUES={"WORKER_TIMEOUT": 0.2, "HEARTBEAT_INTERVAL": 0.05, "DEAD_LIMIT": 3})
    for _ in range(ROUNDS):
        queue = Queue("default")
        source = WorkerQueue("default", worker="w", about="{}")
        note.enqueue("x")
        (job,) = queue.claim(worker="w")
        queue.put_many([1, 2, 3], group="a")
        for call in randomness.sample([*calls(queue, source, job)], 12):
            damage(raw, queue, randomness)
            fine(call)
        raw.delete(*raw.scan_iter(f"{kit.prefix}:*", count=1000))


def fine(call):
    """Make a call that may say that a key is not the kit's, or a claim is gone."""
    with contextlib.suppress(KeyConflict, LeaseLost):
        call()


PLACES = ["nan", "-nan", "inf", "-inf", "1e999", "x", "0x10", " 5", "5 ", "1,5", "0/1"]


@pytest.fixture
def queue(kit):
    kit.options(QUEUES={"WORKER_TIMEOUT": 60})
    return Queue("mail")


def misplace(raw, queue, place):
    """Let a worker hold two jobs, one of them at a place that something else wrote."""
    queue.put_many(["good", "bad"])
    good, bad = queue.claim(2, worker="w")
    raw.zrem(queue.key("running"), f"{bad.token}/{bad.id}")
    member = f"w/c.1/{place}/{bad.id}"
    raw.zadd(queue.key("running"), {member: 0})
    return member, {good.id, bad.id}


def ways(raw, queue, member):
    """Return all that gives a worker's jobs back."""
    source = WorkerQueue("mail", worker="v", about="")
    yield lambda: queue.sign_off(worker="w")
    yield lambda: [raw.zadd(queue.key("workers"), {"w": 1}), queue.heartbeat(worker="v"), silent(raw, queue)]
    yield lambda: source.run_flow(reaped(queue))
    yield lambda: [source.put_back([member.encode()]), queue.sign_off(worker="w")]


def silent(raw, queue):
    """Let the lease be over of a worker whose silence was noticed."""
    raw.zadd(queue.key("workers"), {"w": 1.5})
    queue.heartbeat(worker="v")


def reaped(queue):
    yield moves.reap(queue.key(""), "w", [])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", range(4))
def test_place_that_is_no_number_loses_no_job_and_keeps_no_other(queue, raw, place, way):
    member, ids = misplace(raw, queue, place)
    list(ways(raw, queue, member))[way]()
    sweep(WorkerQueue("mail", worker="v", about=""))
    # A job that may have crashed is claimed alone.
    claimed = [queue.claim(5, worker=f"other{number}") for number in range(len(ids))]
    assert sorted(job.id for jobs in claimed for job in jobs) == sorted(ids)


def test_jobs_of_a_key_that_was_damaged_and_deleted_are_ready_again(queue, raw, caplog):
    ids = queue.put_many(range(3))
    ids.append(queue.put("later", delay=60))
    (running,) = queue.claim(worker="w")
    raw.delete(queue.key("ready"))
    raw.set(queue.key("ready"), "x")
    source = WorkerQueue("mail", worker="v", about="")
    assert "ready" in str(sweep(source)["mail"])
    raw.delete(queue.key("ready"))
    assert sweep(source) == {}
    assert queue.counts() == QueueCounts(1, 2, 1, 0)
    assert "2 jobs in no state made ready: " in caplog.text
    assert {job.id for job in queue.claim(5, worker="v")} == {*ids[:3]} - {running.id}
    assert sweep(source) == {}
    assert queue.counts() == QueueCounts(1, 0, 3, 0)


def test_jobs_of_workers_that_nobody_knows_are_ready_again(queue, raw):
    queue.put_many(range(2))
    queue.claim(worker="gone")
    queue.claim(worker="w")
    raw.delete(queue.key("workers"))
    queue.heartbeat(worker="w")
    sweep(WorkerQueue("mail", worker="v", about=""))
    assert queue.counts() == QueueCounts(0, 1, 1, 0)


def test_leases_without_an_end_and_claims_out_of_order_are_mended(queue, raw):
    queue.put_many(range(2))
    queue.claim(2, worker="w")
    raw.zadd(queue.key("workers"), {"w": "inf"})
    raw.zadd(queue.key("running"), {b"\xff": -5})
    sweep(WorkerQueue("mail", worker="v", about=""))
    assert raw.zscore(queue.key("workers"), "w") < 1e14
    assert queue.sign_off(worker="w") == 2
    assert queue.counts() == QueueCounts(0, 2, 0, 0)


@pytest.mark.parametrize("value", ["x", "", "1.5", "9223372036854775807"])
@pytest.mark.parametrize("options", [{}, {"id": "x"}, {"unique": "u"}, None], ids=str)
def test_counter_that_holds_no_number_is_named_and_no_job_added(queue, raw, value, options):
    raw.set(queue.key("sequence"), value)
    with pytest.raises(KeyConflict) as caught:
        queue.put_many(range(3)) if options is None else queue.put(1, **options)
    assert f"The counter {queue.key('sequence')!a} holds no whole number" in str(caught.value)
    assert raw.keys(queue.key("*").replace("{", "\\{")) == [queue.key("sequence").encode()]


DAMAGED = [
    ("status", "x"),
    ("status", b"\xff"),
    ("at", "nan"),
    ("at", "inf"),
    ("at", "1e300"),
    ("at", "x"),
    ("value", "{"),
    ("value", b"\xff"),
    ("value", '{"$decimal":"sNaN"}'),
    ("record", "0 0 0 5\n~5//default\n{"),
    ("record", '0 0 0 5\n~5//default\n{"task":5}'),
    ("errorx", "[]"),
    ("error1", "5"),
    ("error1", "[1,2,3]"),
    ("error1", "{"),
    ("cancelled", "x"),
]


@pytest.mark.parametrize(("field", "value"), DAMAGED)
def test_damaged_result_is_one_error_that_names_the_key(kit, raw, twin, field, value):
    result, queue = remember.enqueue("x"), Queue("default")
    drain("default")
    key = queue.key(f"result:{result.id}")
    raw.hset(key, field, value)
    with pytest.raises(CorruptMessage) as caught:
        twin(RedisTaskBackend("default", {}).get_result, result.id)
    assert f"The result of call {result.id!a} is damaged: something else wrote to the key {key!a}" in str(caught.value)


@pytest.mark.parametrize("field", ["waiting", "progress"])
@pytest.mark.parametrize("value", ["x", "nan", "-5", '5 [{"$decimal":"sNaN"},null,""]', "5 [[],{},5]", "9" * 30])
def test_damage_beside_a_result_costs_nothing(kit, raw, field, value):
    result = remember.enqueue("x")
    raw.hset(Queue("default").key(f"result:{result.id}"), field, value)
    assert result.wait_until_finished(0.01) is False
    assert result.progress is None
    drain("default")
    assert result.wait_until_finished(1)
    assert result.return_value == "x"


def test_damaged_queue_is_left_out_of_workers_and_counts_and_told(kit, raw, caplog, monkeypatch):
    good, bad = Queue("mail"), Queue("news")
    monkeypatch.setattr(workers, "_log_limit", LogRateLimit())
    for queue in (good, bad):
        queue.put(1)
        queue.claim(worker=queue.name)
    raw.delete(bad.key("workers"))
    raw.set(bad.key("workers"), "x")
    errors, more = {}, {}
    assert [one.id for one in list_workers(errors=errors)] == ["mail"]
    assert f"The key {bad.key('workers')!a} is a string in place of a zset" in str(errors["news"])
    assert [one.id for one in list_workers()] == [one.id for one in asyncio.run(alist_workers())] == ["mail"]
    assert caplog.text.count(f"Workers of queue 'news' are not listed: The key {bad.key('workers')!a}") == 1
    assert control_worker("mail", "quiet")
    raw.delete(bad.key("running"))
    raw.set(bad.key("running"), "x")
    assert list(queue_counts(["mail", "news"], errors=more)) == ["mail"]
    assert list(more) == ["news"]
    with pytest.raises(KeyConflict):
        queue_counts(["mail", "news"])


def test_record_of_a_worker_that_makes_no_sense_is_a_row_that_says_so(kit, raw):
    queue = Queue("mail")
    queue.put(1)
    queue.claim(worker="w")
    raw.hset(queue.key("info"), "w", "\x00")
    raw.zadd(queue.key("workers"), {"w": "inf"})
    (one,) = list_workers(["mail"])
    assert (one.state, one.host, one.pid, len(one.jobs), one.silent) == ("damaged", "?", 0, 1, 0)


def test_payload_that_makes_no_sense_is_told_with_the_id_of_its_job(queue, raw):
    id = queue.put(1)
    raw.hset(queue.key("jobs"), id, "0 0 0 5\n{")
    for job in (queue.get(id), *queue.claim(worker="w")):
        with pytest.raises(CorruptMessage, match=f"The payload of job '{id}' is damaged: not a message"):
            _ = job.payload


def test_claimed_jobs_reach_the_caller_where_another_key_is_damaged(queue, raw, twin):
    queue.put_many(range(2))
    queue.claim(worker="gone")
    raw.zadd(queue.key("workers"), {"gone": 1.5})
    raw.set(queue.key("cancels"), "x")
    assert [job.payload for job in twin(queue.claim, 2, worker="w")] == [1]
    with pytest.raises(KeyConflict, match="cancels"):
        twin(queue.claim, worker="w")
