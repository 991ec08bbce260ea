"""Tags of jobs: where they are kept, and who reads them."""

import json

import pytest

from redis_kit.queues import Queue, chain, task
from redis_kit.queues.engine import message
from redis_kit.queues.engine.message import tags_of
from redis_kit.queues.features.workflows.step import StepCall, step_of
from redis_kit.queues.management.manage import JobFilter
from redis_kit.queues.reports.job_pages import first_jobs

NAME = "shop.tasks." + "x" * 90
LONG = tuple(f"{number}{'é' * 19}" for number in range(5))  # 39 bytes each
STEP = StepCall("w" * 22, 9999, keeps=True, sources=((0, 1), ("tags", [2, 3]), ('"],"tags":["no"]', {"failures": 4})))


@task(tags=["billing"], enqueue_on_commit=False)
def send(order=0):
    """A task that nobody runs here."""


@pytest.fixture
def queue(kit):
    return Queue("default")


def test_call_has_the_tags_of_its_task_or_its_own(queue, twin):
    for call in (send, send.using(tags=("order:42", "vip")), send.using(tags=[])):
        twin(call.enqueue, 42)
    assert sorted(tags_of(job.body) for job in queue.peek()) == [(), ("billing",), ("order:42", "vip")]
    assert send.tags == ("billing",)


def test_job_without_tags_is_stored_as_before(queue):
    send.using(tags=()).enqueue()
    (job,) = queue.peek()
    assert json.loads(job.body) == {"task": send.module_path}


def test_steps_of_workflows_have_their_tags(queue):
    chain(send.step(1), send.using(tags=["last"]).step(2)).enqueue()
    (job,) = queue.peek()
    assert tags_of(job.body) == ("billing",)
    assert step_of(job.body)


@pytest.mark.parametrize("step", [None, STEP], ids=["task", "step"])
def test_tags_are_read_from_the_beginning_of_a_message(step):
    body = message.dumps(NAME, ["x" * 1000], {"tags": ["no"]}, extra=step and step.extra(), tags=LONG)
    assert tags_of(body) == tags_of(body[: body.index(b'"args"')]) == LONG
    assert message.loads(body)[:2] == (NAME, ["x" * 1000])


@pytest.mark.parametrize(
    "body",
    [
        message.dumps(NAME, [], {"tags": ["no"]}),
        message.dumps(NAME, ['","tags":["no"]'], {}),
        message.dumps(NAME, [], {"a": [1], "tags": ["no"]}, extra=STEP.extra()),
        b'{"tags":["no"],"task":"a"}',
        b'{"task":"a","tags":5}',
        b'{"task":"a","tags":["no"',
        b'{"task":"a","v"2,"tags":["no"]}',
        b'{"task":"a","workflow":' + b"[" * 100_000,
        b'{"task":"a","',
        b"\xff",
    ],
)
def test_other_texts_are_no_tags(body):
    assert tags_of(body) == ()


def test_longest_tags_are_found_in_lists(queue):
    long = send.using(tags=LONG)
    for _ in range(3):
        long.enqueue("x" * 2000)
    for _ in range(20):
        queue.nack(*queue.claim(worker="w" * 22))
    found = queue.run_flow(first_jobs(queue, "ready", 5, JobFilter(tag=LONG[-1])))
    assert len(found) == 3
