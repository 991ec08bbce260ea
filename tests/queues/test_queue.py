"""The queue on a real server: states, order, claims, and what a repeat or a late call gets."""

import contextlib
import itertools
import threading
import time
from datetime import timedelta

import pytest

from redis_kit.core.errors import InvalidName, InvalidValue, KeyConflict
from redis_kit.queues import LeaseLost, NotSerializable, PayloadTooLarge, Queue, QueueCounts
from redis_kit.queues.engine.ids import this_process
from redis_kit.queues.inspection import queue_stats
from tests.fixtures.kit import Kit
from tests.fixtures.process import wait_for
from tests.queues.support.claiming import claim_again


@pytest.fixture
def queue(kit):
    return Queue("mail")


def payloads(jobs):
    return [job.payload for job in jobs]


def test_job_goes_from_ready_over_running_to_done(queue, twin, kit):
    id = twin(queue.put, {"to": 42})
    assert twin(queue.counts) == QueueCounts(scheduled=0, ready=1, running=0, dead=0)
    (job,) = twin(queue.claim)
    assert (job.id, job.payload, job.attempt) == (id, {"to": 42}, 1)
    assert twin(queue.counts) == QueueCounts(0, 0, 1, 0)
    twin(queue.ack, job)
    assert twin(queue.counts) == QueueCounts(0, 0, 0, 0)
    assert not kit.client.hlen(queue.key("jobs"))


def test_claim_of_an_empty_queue_is_empty(queue, twin):
    assert twin(queue.claim, 10) == []


def test_order_is_by_priority_and_first_in_first_out_within_one(queue, twin):
    for name, priority in (("a", 0), ("b", 0), ("low", -100), ("high", 100), ("c", 0), ("higher", 1), ("high2", 100)):
        twin(queue.put, name, priority=priority)
    assert payloads(twin(queue.claim, 10)) == ["high", "high2", "higher", "a", "b", "c", "low"]


def test_priority_is_exact_after_as_many_jobs_as_a_queue_may_ever_see(queue, kit):
    queue.put("a", priority=99)
    queue.put("d", priority=-100)
    kit.client.set(queue.key("sequence"), 2**44 - 4)
    for name, priority in (("b", 100), ("c", 100), ("e", -100), ("f", -100)):
        queue.put(name, priority=priority)
    assert payloads(queue.claim(6)) == ["b", "c", "a", "d", "e", "f"]


def test_many_are_put_in_order_and_in_few_calls(queue, twin, kit, commands):
    twin(queue.put, "first")
    with commands(kit) as sent:
        ids = twin(queue.put_many, (number for number in range(1200)))
    assert sent == ["EVALSHA"] * 3
    assert len(set(ids)) == 1200
    assert payloads(twin(queue.claim, 1000)) == ["first", *range(999)]


def test_put_claim_and_ack_are_one_command_each(queue, twin, kit, commands):
    twin(queue.put, 0)
    twin(queue.ack, *twin(queue.claim))
    with commands(kit) as sent:
        twin(queue.put, 1)
        (job,) = twin(queue.claim)
        twin(queue.ack, job)
    assert sent == ["EVALSHA"] * 3


def test_scheduled_job_is_never_early(queue, twin, kit):
    before = server_time(kit)
    twin(queue.put, "later", delay=0.2)
    assert twin(queue.counts).scheduled == 1
    assert twin(queue.claim) == []
    (job,) = wait_for(lambda: twin(queue.claim))
    assert server_time(kit) - before >= 0.2
    assert job.due - before >= 0.2


def test_scheduled_job_keeps_its_priority(queue):
    queue.put("urgent", delay=timedelta(milliseconds=5), priority=5)
    queue.put("usual")
    wait_for(lambda: server_due(queue))
    assert payloads(queue.claim(2)) == ["urgent", "usual"]


def test_promotion_is_bounded_and_loses_nothing(queue):
    queue.put_many(range(450), delay=0.001)
    wait_for(lambda: server_due(queue, 450))
    seen = set()
    while jobs := queue.claim(10):
        assert queue.counts().ready <= 600
        seen |= set(payloads(jobs))
    assert seen == set(range(450))


def test_id_of_a_job_in_the_queue_is_not_taken_twice(queue, twin):
    assert twin(queue.put, "first", id="order.42") == "order.42"
    assert twin(queue.put, "second", id="order.42") == "order.42"
    (job,) = twin(queue.claim, 5)
    assert job.payload == "first"
    twin(queue.put, "third", id="order.42")
    assert twin(queue.counts) == QueueCounts(0, 0, 1, 0)
    twin(queue.ack, job)
    twin(queue.put, "fourth", id="order.42")
    assert payloads(twin(queue.claim, 5)) == ["fourth"]


def test_id_of_a_dead_job_can_be_used_again(queue, twin):
    twin(queue.put, "bad", id="order")
    twin(queue.nack, *twin(queue.claim), max_attempts=1)
    twin(queue.put, "good", id="order")
    assert twin(queue.counts) == QueueCounts(0, 1, 0, 0)
    assert payloads(twin(queue.claim)) == ["good"]


def test_failed_job_goes_to_the_end_of_its_priority(queue, twin):
    twin(queue.put, "a")
    twin(queue.put, "b")
    assert twin(queue.nack, *twin(queue.claim)) == "ready"
    jobs = twin(queue.claim, 2)
    assert payloads(jobs) == ["b", "a"]
    assert [job.attempt for job in jobs] == [1, 2]


def test_failed_job_waits_as_long_as_it_is_told_to(queue, twin, kit):
    twin(queue.put, "a")
    before = server_time(kit)
    assert twin(queue.nack, *twin(queue.claim), delay=0.1) == "scheduled"
    assert twin(queue.claim) == []
    wait_for(lambda: twin(queue.claim))
    assert server_time(kit) - before >= 0.1


def test_job_is_dead_when_its_attempts_are_used_up_and_can_be_put_back(kit, queue, twin):
    kit.options(QUEUES={"MAX_ATTEMPTS": 3})
    twin(queue.put, {"n": 1})
    states = [twin(queue.nack, *twin(queue.claim), error=f"no {number}") for number in range(3)]
    assert states == ["ready", "ready", "dead"]
    (dead,) = twin(queue.peek, state="dead")
    assert (dead.payload, dead.reason, dead.attempts) == ({"n": 1}, "no 2", 3)
    assert twin(queue.requeue) == 1
    assert twin(queue.peek, state="dead") == []
    (job,) = twin(queue.claim)
    assert job.attempt == 1


def test_dead_jobs_are_bounded_and_the_oldest_go_first(queue, kit):
    kit.options(QUEUES={"DEAD_LIMIT": 5})
    for number in range(9):
        queue.put(number, id=str(number))
        queue.nack(*queue.claim(), max_attempts=1)
    assert payloads(queue.peek(state="dead")) == [8, 7, 6, 5, 4]
    assert kit.client.hlen(queue.key("jobs")) == kit.client.hlen(queue.key("reasons")) == 5


def test_dead_jobs_go_after_a_month(queue, kit):
    for number in range(2):
        queue.put(number)
        queue.nack(*queue.claim(), max_attempts=1)
    (old,) = [job.id for job in queue.peek(state="dead") if job.payload == 0]
    kit.client.zadd(queue.key("dead"), {old: (server_time(kit) - 31 * 86400) * 1000})
    queue.put(2)
    queue.nack(*queue.claim(), max_attempts=1)
    assert payloads(queue.peek(state="dead")) == [2, 1]


def test_repeated_ack_gets_the_first_answer(queue, twin):
    twin(queue.put, 1)
    (job,) = twin(queue.claim)
    twin(queue.ack, job)
    twin(queue.ack, job)
    with pytest.raises(LeaseLost):
        twin(queue.nack, job)


def test_repeated_nack_gets_the_first_answer(queue, twin):
    twin(queue.put, 1)
    (job,) = twin(queue.claim)
    assert [twin(queue.nack, job, delay=60) for _ in range(3)] == ["scheduled"] * 3
    assert twin(queue.counts) == QueueCounts(1, 0, 0, 0)
    with pytest.raises(LeaseLost):
        twin(queue.ack, job)


def test_answers_are_remembered_for_as_many_jobs_as_a_worker_has_threads(queue):
    queue.put_many(range(64))
    jobs = queue.claim(64)
    for _ in range(2):
        for job in jobs:
            queue.ack(job)


@pytest.mark.parametrize("jobs", [0, 2])
def test_claim_that_comes_in_late_after_it_was_repeated_takes_nothing(queue, jobs):
    queue.put_many(range(jobs))
    claim_again(queue, "token", 3)
    queue.ack(*held(queue))
    queue.put("later")
    assert claim_again(queue, "token", 3, again=False).partition(b"\n")[2] == b""
    assert queue.counts() == QueueCounts(0, 1, 0, 0)
    assert len(queue.claim(worker="me")) == 1


def test_late_first_call_of_a_repeated_claim_gets_nothing(queue, kit):
    queue.put_many(range(3))
    first, again = (claim_again(queue, "token", 2).partition(b"\n")[2] for _ in range(2))
    assert first == again != b""
    late = claim_again(queue, "token", 3, again=False)
    assert late.partition(b"\n")[2] == b""
    assert queue.counts() == QueueCounts(0, 1, 2, 0)
    assert 0 < kit.client.pttl(queue.key("repeats")) <= 600_000


def test_answers_are_at_least_250_and_at_most_300(queue, kit):
    queue.put_many(range(700))
    first, *others = (queue.claim(175) for _ in range(4))
    for jobs in others:
        queue.ack(*jobs)
    for job in first:
        queue.ack(job)
    key = queue.key(f"answers:{this_process()}")
    assert 250 <= kit.client.llen(key) <= 300
    assert 3_000_000 < kit.client.pttl(key) <= 3_600_000
    queue.ack(*first, *others[-1][-75:])
    with pytest.raises(LeaseLost):
        queue.ack(others[0][0])
    assert sum(queue_stats(["mail"])["mail"].done) == 700


def test_ack_of_jobs_of_which_some_are_lost_ends_the_others(queue, kit):
    queue.put_many(range(5))
    jobs = queue.claim(5)
    queue.ack(jobs[0])
    kit.client.zrem(queue.key("running"), *(f"{job.token}/{job.id}" for job in jobs[3:]))
    with pytest.raises(LeaseLost, match=f"{jobs[3].id}.*{jobs[4].id}") as caught:
        queue.ack(*jobs)
    assert jobs[0].id not in str(caught.value)
    assert set(kit.client.hkeys(queue.key("jobs"))) == {job.id for job in jobs[3:]}
    assert sum(queue_stats(["mail"])["mail"].done) == 3


def held(queue):
    from redis_kit.core import connections
    from redis_kit.queues.engine.job import Job

    members = connections.client().call("ZRANGE", queue.key("running"), 0, -1)
    return [Job(member.decode().rpartition("/")[2], b"", member.decode().rpartition("/")[0]) for member in members]


def test_repeated_claim_gets_the_same_jobs(queue):
    queue.put_many(range(5))
    first, second = (claim_again(queue, "token", 3, again=again) for again in (False, True))
    assert first.partition(b"\n")[2] == second.partition(b"\n")[2] != b""
    assert queue.counts() == QueueCounts(0, 2, 3, 0)


def answer(step):
    return (yield step)


def test_claim_whose_answer_got_lost_is_repeated_by_the_next_one(make_proxied, twin):
    queue, proxy = make_proxied
    queue.put_many(range(3))
    with proxy.fault("drop_replies"), pytest.raises(Exception, match="reached"):
        twin(queue.claim, 2)
    assert payloads(twin(queue.claim, 2)) == [0, 1]
    assert queue.counts() == QueueCounts(0, 1, 2, 0)


def test_ack_whose_answer_got_lost_can_be_repeated(make_proxied, twin):
    queue, proxy = make_proxied
    queue.put(1)
    (job,) = twin(queue.claim)
    with proxy.fault("drop_replies"), pytest.raises(Exception, match="reached") as error:
        twin(queue.ack, job)
    assert error.value.indeterminate
    twin(queue.ack, job)


@pytest.fixture
def make_proxied(kit, proxy):
    kit.connect(proxy.connection, READ_TIMEOUT=0.5, CONNECT_TIMEOUT=1.0)
    return Queue("mail"), proxy


def test_two_claims_never_get_the_same_job(queue):
    queue.put_many(range(400))
    seen, lock = [], threading.Lock()

    def work(name):
        while jobs := queue.claim(3, worker=name):
            with lock:
                seen.extend(payloads(jobs))

    threads = [threading.Thread(target=work, args=(f"w{number % 3}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(400))


def test_sign_off_returns_jobs_to_their_place_without_the_attempt(queue, twin):
    queue.put_many(range(150))
    twin(queue.claim, 120, worker="w1")
    assert twin(queue.sign_off, worker="w1") == 120
    jobs = twin(queue.claim, 200, worker="w2")
    assert payloads(jobs) == list(range(150))
    assert {job.attempt for job in jobs} == {1}


JOBS = 32_000  # what a hash table holds before it doubles


@pytest.mark.parametrize("server", ["valkey", "debian_redis"])
def test_pending_job_takes_at_most_300_bytes(server, request, settings):
    with contextlib.closing(Kit(request.getfixturevalue(server), settings)) as kit:
        queue = Queue("mail")
        before = kit.client.info("memory")["used_memory"]
        queue.put_many({"task": "shop.tasks.send_mail", "args": [number]} for number in range(JOBS))

        def used():
            return (kit.client.info("memory")["used_memory"] - before) / JOBS

        # While a table grows the server holds it twice, for some milliseconds.
        wait_for(lambda: used() <= 300)
        print(f"{used():.0f} bytes per pending job on {server}")


HASHES = ("jobs", "reasons", "info", "minutes")
PARTS = (*HASHES, "answers", "ready", "scheduled", "running", "dead", "workers", "signal", "sequence")


@pytest.mark.parametrize("part", PARTS)
def test_key_of_another_type_is_a_conflict_and_changes_nothing(queue, kit, part):
    queue.put_many(range(3))
    queue.put("b", delay=0.001)
    job, other = queue.claim(2)
    queue.nack(other, max_attempts=1)
    key = queue.key(f"answers:{this_process()}" if part == "answers" else part)
    kit.client.delete(key)
    kit.client.zadd(key, {"x": 1}) if part in (*HASHES, "answers") else kit.client.hset(key, "x", 1)
    conflicts = 0
    for call in (
        lambda: queue.put("c"),
        lambda: queue.claim(2),
        lambda: queue.nack(job),
        lambda: queue.ack(job),
        queue.heartbeat,
        queue.sign_off,
        queue.requeue,
    ):
        before = dump(kit)
        try:
            call()
        except KeyConflict:
            conflicts += 1
            assert dump(kit) == before
        except LeaseLost:
            pass
    assert conflicts >= (1 if part in ("minutes", "answers") else 2)


def dump(kit):
    return {key: kit.client.dump(key) for key in kit.keys()}


@pytest.mark.parametrize(
    "wrong",
    [
        {"delay": -1},
        {"delay": float("nan")},
        {"delay": float("inf")},
        {"delay": 1e12},
        {"delay": "5"},
        {"delay": True},
        {"priority": 1.5},
        {"priority": "high"},
        {"priority": 10**9},
        {"priority": 101},
        {"priority": True},
        {"id": ""},
        {"id": "x" * 300},
        {"id": "../x"},
        {"id": "<script>"},
        {"id": 5},
    ],
    ids=repr,
)
def test_wrong_arguments_are_refused_before_anything_is_sent(wrong):
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        Queue("mail").put(1, **wrong)


@pytest.mark.parametrize("name", ["", None, b"x", 5, ("a",), "x" * 513, "\ud800"], ids=ascii)
def test_wrong_names_are_refused(name):
    with pytest.raises(InvalidName):
        Queue(name)


def test_names_can_not_leave_their_slot(kit):
    odd = Queue("a}b{c:ready")
    odd.put(1)
    Queue("a").put(2)
    assert payloads(odd.claim(5)) == [1]
    assert all(key.startswith(f"{kit.prefix}:{{queues") for key in kit.keys())


@pytest.mark.parametrize("limit", [0, -1, 1001, True, "1", 1.0])
def test_wrong_limits_are_refused(limit):
    for method in (Queue("mail").claim, Queue("mail").peek, Queue("mail").requeue):
        with pytest.raises(InvalidValue, match="limit"):
            method(limit=limit)


def test_payload_that_json_can_not_hold_leaves_those_before_it(queue):
    with pytest.raises(NotSerializable, match=r"payload\['x'\]\[1\]"):
        queue.put({"x": [1, object()]})
    with pytest.raises(PayloadTooLarge, match="262,144"):
        queue.put("x" * 262_144)
    with pytest.raises(NotSerializable, match=r"payloads\[700\]"):
        queue.put_many(number if number < 700 else object() for number in range(1000))
    assert queue.counts().ready == 500


def test_every_temporary_key_expires(queue, kit):
    queue.put(1)
    assert 0 < kit.client.pttl(queue.key("signal")) <= 10_000
    queue.ack(*queue.claim())
    assert kit.client.pttl(queue.key("minutes")) > 0


def test_signal_is_one_mark_however_many_jobs_come(queue, kit):
    for number in range(20):
        queue.put(number)
    assert kit.client.llen(queue.key("signal")) == 1
    queue.claim(100)
    assert kit.client.llen(queue.key("signal")) == 0


def test_put_runs_few_commands_while_a_worker_is_to_wake_up(queue, kit):
    queue.put(1)
    with kit.client.monitor() as monitor:
        queue.put(2)
        kit.client.echo("end")
        entries = itertools.takewhile(lambda entry: entry["command"] != "ECHO end", monitor.listen())
        ran = [entry["command"].split(" ")[0] for entry in entries if entry["client_type"] == "lua"]
    assert [name for name in ran if name != "TIME"] == ["LLEN", "INCRBY", "HSET", "ZADD"]


def test_who_takes_all_it_can_hold_wakes_another(queue, kit):
    queue.put_many(range(3))
    kit.client.delete(queue.key("signal"))
    queue.claim(2)
    assert kit.client.llen(queue.key("signal")) == 1


def test_earlier_due_time_wakes_a_worker_and_a_later_one_does_not(queue, kit):
    queue.put(1, delay=60)
    assert kit.client.delete(queue.key("signal")) == 1
    queue.put(2, delay=90)
    assert not kit.client.exists(queue.key("signal"))
    queue.put(3, delay=30)
    assert kit.client.exists(queue.key("signal"))


def server_time(kit):
    seconds, micros = kit.client.time()
    return seconds + micros / 1e6


def server_due(queue, count=1):
    from redis_kit.core import connections

    seconds, micros = connections.client().call("TIME")
    due = connections.client().call("ZCOUNT", queue.key("scheduled"), "-inf", int(seconds) * 1000 + int(micros) // 1000)
    return due >= count


def test_clock_of_the_client_decides_nothing(queue, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 0.0)
    queue.put("now")
    queue.put("later", delay=60)
    assert payloads(queue.claim(5)) == ["now"]


def test_full_server_refuses_new_jobs_and_lets_workers_drain_it(own_kit, twin):
    from redis_kit.core.errors import OutOfMemory

    own_kit.options(READ_TIMEOUT=2.0, CONNECT_TIMEOUT=2.0)
    queue = Queue("mail")
    queue.put_many(range(3))
    own_kit.client.config_set("maxmemory", 1)
    with pytest.raises(OutOfMemory):
        twin(queue.put, 4)
    first, second, third = twin(queue.claim, 3, worker="w")
    twin(queue.ack, first)
    assert twin(queue.nack, second, delay=60) == "scheduled"
    assert twin(queue.nack, third, max_attempts=1) == "dead"
    twin(queue.heartbeat, worker="w")
    twin(queue.sign_off, worker="w")
    assert twin(queue.counts) == QueueCounts(1, 0, 0, 1)


def test_job_that_was_not_claimed_can_not_be_acknowledged(kit):
    queue = Queue("mail")
    queue.put(1)
    (job,) = queue.peek()
    for call in (queue.ack, queue.nack, lambda peeked: queue.claim(done=[peeked])):
        with pytest.raises(InvalidValue, match=r"Only a Job that claim\(\) returned can be acknowledged"):
            call(job)
    assert queue.counts().ready == 1
