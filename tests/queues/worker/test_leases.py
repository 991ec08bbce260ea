"""Leases of workers: a dead one's jobs come back once, a living one keeps its own, however long they take."""

import threading
import time

import pytest

from redis_kit.queues import LeaseLost, Queue, QueueCounts
from redis_kit.queues.engine import ids, liveness
from redis_kit.queues.reports.lookup import look_up
from tests.fixtures.process import wait_for

pytestmark = pytest.mark.once

LEASE = 0.3


@pytest.fixture
def queue(kit):
    kit.options(QUEUES={"HEARTBEAT_INTERVAL": 0.1, "WORKER_TIMEOUT": LEASE})
    return Queue("mail")


@pytest.fixture
def steady(queue):
    """A worker that has been alive for a whole lease, and stays so."""
    stop = threading.Event()

    def live():
        while not stop.wait(0.05):
            queue.heartbeat(worker="steady")

    thread = threading.Thread(target=live)
    queue.heartbeat(worker="steady")
    thread.start()
    assert not stop.wait(LEASE + 0.1)
    yield "steady"
    stop.set()
    thread.join()


def test_jobs_of_a_silent_worker_go_to_others_and_it_can_not_end_them(queue, twin):
    queue.put_many(["a", "b"])
    held = twin(queue.claim, 1, worker="dead")
    (again,) = wait_for(lambda: twin(queue.claim, 1, worker="other") if running_of(queue, "dead") == 0 else [])
    # "a" was given back to its old place, before "b".
    assert again.payload in ("a", "b")
    with pytest.raises(LeaseLost, match="another worker"):
        twin(queue.ack, *held)
    with pytest.raises(LeaseLost):
        twin(queue.nack, *held)


def running_of(queue, worker):
    queue.heartbeat(worker="looks")
    from redis_kit.core import connections

    members = connections.client("default").call("ZRANGE", queue.key("running"), 0, -1)
    return sum(member.startswith(f"{worker}/".encode()) for member in members)


def test_job_comes_back_in_its_old_place_with_its_crash_counted(queue, steady):
    queue.put_many(["a", "b", "c"])
    queue.claim(1, worker="dead")
    wait_for(lambda: queue.counts().ready == 3)
    assert queue.claim(3, worker="other")[0].payload == "a"  # what ran in a process that died is claimed alone
    assert [queue.counts().running, queue.sign_off(worker="other")] == [1, 1]
    jobs = [job for _ in range(2) for job in queue.claim(2, worker=steady)]
    assert [(job.payload, job.attempt, job.crashes) for job in jobs] == [("a", 2, 1), ("b", 1, 0)]
    assert [job.payload for job in queue.claim(2, worker=steady)] == ["c"]


def test_jobs_held_together_are_not_to_blame_and_are_claimed_one_by_one(queue, kit):
    queue.put_many(["poison", "b", "c"])
    for held in (3, 1, 1, 1):
        name = f"w{held}"
        assert len(queue.claim(held, worker=name)) == held
        kit.client.zadd(queue.key("workers"), {name: 1.5})  # its lease is over, and others were told so
        queue.heartbeat(worker="steady")
    (dead,) = queue.peek(state="dead")
    assert (dead.payload, dead.reason) == ("poison", "poison: 3 processes died in which it ran alone")
    assert (dead.crashes, dead.attempts) == (4, 3)
    _, details = look_up(["mail"], dead.id)
    assert (details.alone, details.beside) == (3, [("mail", job.id) for job in queue.peek()])
    queue.put("d", priority=1)
    assert [[job.payload for job in queue.claim(3, worker="steady")] for _ in range(4)] == [["d"], ["b"], ["c"], []]
    assert kit.client.ttl(queue.key("crashed")) > 0


def test_late_ack_is_refused_after_another_worker_did_the_job(queue, steady):
    queue.put("a")
    (held,) = queue.claim(worker="dead")
    wait_for(lambda: queue.counts().ready == 1)
    queue.ack(*queue.claim(worker=steady))
    with pytest.raises(LeaseLost):
        queue.ack(held)
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_worker_that_beats_keeps_its_job_for_longer_than_a_lease(queue, steady):
    queue.put("long")
    (job,) = queue.claim(worker="slow")
    beats = threading.Event()
    for _ in range(5):
        queue.heartbeat(worker="slow")
        beats.wait(0.1)
    queue.ack(job)


def test_acks_are_signs_of_life_too(queue, steady):
    queue.put_many(range(5))
    pause = threading.Event()
    for job in queue.claim(5, worker="slow"):
        pause.wait(0.1)
        queue.ack(job)
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_job_that_kills_its_workers_is_dead_after_three_and_others_are_not(queue, steady, kit):
    queue.put("poison", priority=1)
    queue.put("fine")
    for number in range(3):
        assert queue.claim(worker=f"w{number}")[0].payload == "poison"
        wait_for(lambda: queue.counts().running == 0)
    (dead,) = queue.peek(state="dead")
    assert (dead.payload, dead.reason, dead.crashes) == ("poison", "poison: 3 processes died in which it ran alone", 3)
    assert [job.payload for job in queue.claim(5, worker=steady)] == ["fine"]
    assert set(kit.client.hkeys(queue.key("info"))) == {steady}


@pytest.mark.parametrize(("more", "alone"), [({}, 0), ({"alone": True}, 1)], ids=["a worker", "a worker of one job"])
def test_job_that_a_worker_held_is_to_blame_if_that_runs_no_others(queue, kit, more, alone):
    about = ids.information(supervisor="s", threads=8, **more)
    queue.put(1, id="a")
    queue.claim(worker="dead")
    queue.run_flow(liveness.heartbeat(queue, "dead", about))
    kit.client.zadd(queue.key("workers"), {"dead": 1.5})
    queue.heartbeat(worker="steady")
    _, details = look_up(["mail"], "a")
    assert (details.job.crashes, details.job.attempts, details.alone) == (1, alone, alone)


def test_job_that_nobody_runs_alone_is_dead_at_last(queue, kit):
    kit.options(QUEUES={"HEARTBEAT_INTERVAL": 0.1, "WORKER_TIMEOUT": LEASE, "MAX_CRASHES": 1})
    queue.put(1)
    for number in range(10):
        queue.claim(worker="dead")
        queue.run_flow(liveness.heartbeat(queue, "dead", ids.information(supervisor="s", number=number)))
        kit.client.zadd(queue.key("workers"), {"dead": 1.5})
        assert queue.counts().dead == 0
        queue.heartbeat(worker="steady")
    (dead,) = queue.peek(state="dead")
    assert dead.reason == "poison: 10 processes died in which it ran"


def test_many_reapers_give_each_job_back_once(queue, steady):
    queue.put_many(range(350))
    held = queue.claim(350, worker="dead")
    for number in range(8):
        queue.heartbeat(worker=f"reaper{number}")
    given, lock = [], threading.Lock()

    def reap(name):
        while queue.counts().running:
            count = queue.heartbeat(worker=name)
            assert count <= 100
            with lock:
                given.append(count)

    threads = [threading.Thread(target=reap, args=(f"reaper{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert queue.counts() == QueueCounts(0, 350, 0, 0)
    jobs = [job for _ in range(350) for job in queue.claim(350, worker=steady)]
    assert [job.payload for job in jobs] == list(range(350))
    assert {job.crashes for job in jobs} == {1}
    assert len(held) == 350


def end_all_leases(kit, queue):
    for worker, _ in kit.client.zrange(queue.key("workers"), 0, -1, withscores=True):
        kit.client.zadd(queue.key("workers"), {worker: 1})


def test_after_an_outage_nobody_is_robbed_by_who_comes_back_first(queue, kit):
    kit.options(QUEUES={"HEARTBEAT_INTERVAL": 0.1, "WORKER_TIMEOUT": 5})
    queue.put_many(["a", "b"])
    (a,), (b,) = queue.claim(worker="w1"), queue.claim(worker="w2")
    end_all_leases(kit, queue)
    assert queue.heartbeat(worker="w1") == 0
    assert queue.claim(worker="w1") == []
    queue.ack(a)
    queue.ack(b)


def test_new_worker_returns_jobs_at_once_if_another_was_always_there(queue, steady, kit):
    queue.put("a")
    queue.claim(worker="dead")
    kit.client.zadd(queue.key("workers"), {"dead": 1})
    assert queue.heartbeat(worker="new") == 1 or queue.counts().running == 0  # the other one may have been quicker


def test_successor_of_all_workers_returns_their_jobs_a_lease_after_it_came(queue, kit):
    kit.options(QUEUES={"HEARTBEAT_INTERVAL": 0.1, "WORKER_TIMEOUT": 1.0})
    queue.put("a")
    queue.claim(worker="dead")
    pause = threading.Event()
    pause.wait(0.3)
    came = time.monotonic()
    while not queue.heartbeat(worker="new"):
        pause.wait(0.02)
    took = time.monotonic() - came
    print(f"{took:.2f} s after it came")
    assert 0.9 <= took < 10  # without a successor's own time it is at once, or never


@pytest.mark.parametrize(("left", "returned"), [(5_000, 0), (25_000, 1)])
def test_worker_that_comes_back_after_a_short_outage_robs_nobody(queue, kit, left, returned):
    kit.options(QUEUES={"WORKER_TIMEOUT": 30.0})
    queue.put("a")
    queue.heartbeat(worker="second")
    queue.claim(worker="first")
    now = server_ms(kit)
    for worker, reported in kit.client.hgetall(queue.key("info")).items():
        kit.client.hset(queue.key("info"), worker, f"{now - 90_000} {reported.partition(' ')[2]}")
    # The lease of the first is over. The second was silent for the rest of its 30 s.
    kit.client.zadd(queue.key("workers"), {"first": now - 1, "second": now + left})
    assert queue.heartbeat(worker="second") == returned
    assert queue.heartbeat(worker="first") == 0
    assert queue.counts().running == 1 - returned


def server_ms(kit):
    """The server's clock."""
    seconds, micros = kit.client.time()
    return seconds * 1000 + micros // 1000


def test_worker_that_does_not_return_after_an_outage_loses_its_jobs(queue, kit):
    queue.put("a")
    queue.claim(worker="w1")
    end_all_leases(kit, queue)
    assert queue.heartbeat(worker="w2") == 0
    wait_for(lambda: queue.heartbeat(worker="w2") == 1)


def test_worker_that_was_away_but_not_robbed_may_still_end_its_job(queue, kit):
    queue.put("a")
    (job,) = queue.claim(worker="w1")
    end_all_leases(kit, queue)
    queue.ack(job)
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_process_that_claims_without_a_name_has_one_of_its_own(queue, kit):
    queue.put_many(range(2))
    queue.claim()
    queue.claim()
    (worker,) = kit.client.zrange(queue.key("workers"), 0, -1)
    assert len(worker) == 22


@pytest.mark.parametrize("name", ["", "a/b", "x" * 129, "ö", 5])
def test_wrong_names_of_workers_are_refused(queue, name):
    from redis_kit.core.errors import InvalidValue

    with pytest.raises(InvalidValue, match="worker"):
        queue.claim(worker=name)
