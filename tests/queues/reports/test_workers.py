"""Workers with their running jobs, and those that ended without signing off: which are recorded, and for how long."""

import asyncio
import json

import pytest

from redis_kit.queues import Queue
from redis_kit.queues.engine import liveness
from redis_kit.queues.inspection import alost_workers, list_workers, lost_workers

pytestmark = pytest.mark.once

CHILD = {"supervisor": "s1", "supervisor_pid": 5}


@pytest.fixture
def mail(kit):
    kit.options(QUEUES={"NAMES": ["mail", "news"], "WORKER_TIMEOUT": 60})
    return Queue("mail")


def beat(queue, worker, **about):
    said = json.dumps({"host": "web1", "pid": 7, "queues": ['a"pid": 1'], **about})
    queue.run_flow(liveness.heartbeat(queue, worker, said))


def lose(kit, queue, *workers):
    """Let the leases of workers end, and another worker, which has been there for long, notice it."""
    beat(queue, "steady")
    kit.client.hset(queue.key("info"), "steady", '1 {"host": "web2", "pid": 1}')
    kit.client.zadd(queue.key("workers"), dict.fromkeys(workers, 1))
    beat(queue, "steady")


def test_all_running_jobs_of_a_worker_are_counted(kit, mail):
    for queue in (mail, Queue("news")):
        queue.put_many(range(150))
        queue.claim(150, worker="w1")
    mail.put(1)
    mail.claim(worker="w10")
    first, second = list_workers()
    assert (first.running, len(first.jobs), len(first.held)) == (300, 200, 200)
    assert (second.running, len(second.jobs)) == (1, 1)


def test_worker_that_did_not_sign_off_is_lost_with_its_jobs(kit, mail):
    news = Queue("news")
    for queue in (mail, news):
        beat(queue, "w1", **CHILD)
    mail.put_many(range(150))
    mail.claim(150, worker="w1")
    lose(kit, mail, "w1")
    assert lost_workers() == []  # it is dead while others have yet to take some of its jobs
    beat(mail, "steady")
    (worker,) = asyncio.run(alost_workers(["mail"]))
    assert worker[:6] == ("w1", "web1", 7, 5, ("mail",), 150)
    lose(kit, news, "w1")
    (worker,) = lost_workers()
    assert (worker.queues, worker.jobs) == (("mail", "news"), 150)
    assert 0 <= worker.age < 60
    assert 0 < kit.client.ttl(mail.key("lost")) <= 24 * 3600


def test_worker_that_signed_off_or_came_back_is_not_lost(kit, mail):
    for worker in ("ended", "back"):
        beat(mail, worker, **CHILD)
    mail.sign_off(worker="ended")
    lose(kit, mail, "back")
    assert [worker.id for worker in lost_workers()] == ["back"]
    beat(mail, "back", **CHILD)
    assert lost_workers() == []
    mail.sign_off(worker="back")
    assert lost_workers() == []


def test_program_without_a_supervisor_is_lost_only_with_jobs(kit, mail):
    mail.put(1)
    for worker in ("idle", "busy"):
        beat(mail, worker)
    mail.claim(worker="busy")
    lose(kit, mail, "idle", "busy")
    assert [(worker.id, worker.supervisor_pid, worker.jobs) for worker in lost_workers()] == [("busy", 0, 1)]


def test_latest_fifty_of_a_day_are_kept(kit, mail):
    lost = mail.key("lost")
    records = {f"old{number}": f"{1000 + number} 0 7 5 web1" for number in range(50)}
    kit.client.hset(lost, mapping={**records, "damaged": "x"})
    beat(mail, "w1", **CHILD)
    lose(kit, mail, "w1")
    assert [worker.id for worker in lost_workers()] == ["w1"]
    assert kit.client.hlen(lost) == 51
    assert not kit.client.hexists(lost, "damaged")  # the oldest goes
    beat(mail, "w2", **CHILD)
    lose(kit, mail, "w2")
    assert kit.client.hlen(lost) == 51
    assert not kit.client.hexists(lost, "old0")
