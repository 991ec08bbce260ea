"""Dead jobs by what they died of."""

import pytest

from redis_kit.queues import Queue
from redis_kit.queues.engine.job import Cause
from redis_kit.queues.engine.message import task_of
from redis_kit.queues.management import manage
from redis_kit.queues.reports import job_pages
from tests.queues.support.putting import die


@pytest.fixture
def queue(kit):
    return Queue("mail")


def test_jobs_are_grouped_by_task_and_error(queue):
    die(queue, "ValueError: no 1", "ValueError: no 2", "KeyError: 'x'", "poison: 3 processes died")
    die(queue, "ValueError: no 3", task="shop.tasks.bill")
    queue.put({"id": 1})
    queue.nack(*queue.claim(), max_attempts=1)
    found = job_pages.groups(queue.peek(state="dead"))
    assert found[0].cause == ("shop.tasks.send", "ValueError")
    assert {group.cause: group.jobs for group in found} == {
        ("shop.tasks.send", "ValueError"): 2,
        ("shop.tasks.send", "KeyError"): 1,
        ("shop.tasks.send", "poison"): 1,
        ("shop.tasks.bill", "ValueError"): 1,
        ("", ""): 1,
    }


def test_group_has_its_first_and_its_latest_job(queue, kit):
    die(queue, "ValueError: old", "ValueError: later", "ValueError: new")
    kit.client.zadd(queue.key("dead"), {"j0": 1000, "j1": 2000})
    (group,) = job_pages.groups(queue.peek(state="dead"))
    assert (group.jobs, group.latest.reason) == (3, "ValueError: new")
    assert (group.first.reason, group.first.died) == ("ValueError: old", 1)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"task":"shop.tasks.send","args":["cut of', "shop.tasks.send"),
        ('{"task":"läden.tasks.send"}'.encode(), "läden.tasks.send"),
        (b'{"task":"a\\"b"}', 'a"b'),
        (b'{"task":"cut of', ""),
        (b'{"task":"\xff"}', ""),
        (b'{"task":5}', ""),
        (b'{"id":1}', ""),
        (b"", ""),
        (b"\x00", ""),
    ],
)
def test_task_is_read_from_the_beginning_of_a_body(body, name):
    assert task_of(body) == name


def test_large_jobs_are_read_no_further_than_needed(queue):
    die(queue, "ValueError: no", size=100_000)
    ((_, group),) = job_pages.dead_by_cause(["mail"])
    assert len(group.latest.body) < 1000
    assert group.cause == Cause("shop.tasks.send", "ValueError")


@pytest.mark.parametrize("page", [1, 3, 1000])
def test_those_of_one_cause_are_put_back_the_oldest_first(queue, monkeypatch, page):
    monkeypatch.setattr(manage, "PAGE", page)
    monkeypatch.setattr(manage, "CHUNK", 2)
    die(queue, *["ValueError: no", "KeyError: no"] * 4)
    assert queue.requeue(error="ValueError", limit=1) == 1
    assert queue.requeue(task="shop.tasks.send", error="ValueError") == 3
    assert [job.id for job in queue.claim(9)] == ["j0", "j2", "j4", "j6"]
    assert queue.requeue(task="other") == 0
    assert queue.requeue(task="shop.tasks.send") == 4
    assert queue.counts().dead == 0
