"""Limits of tasks, groups and queues: concurrency, rates, for single arguments, and from the settings."""

import time

import pytest

from redis_kit.core.errors import ConfigurationError, InvalidRate, InvalidValue
from redis_kit.queues import Limit, Queue, task
from redis_kit.queues.engine import claim
from tests.queues.support.tasks import remember


def work(tenant_id: int, value: object = None) -> None:
    """A function that tests make a task of."""


@pytest.fixture
def queue(kit):
    return Queue("default")


def values(jobs):
    return [job.payload["args"] for job in jobs]


def test_no_more_jobs_of_a_task_run_than_it_allows_and_others_pass_by(queue):
    limited = task(concurrency=2)(work)
    for value in range(4):
        limited.enqueue(value)
    remember.enqueue("x")
    first, other, second = queue.claim(10, worker="w")
    assert values([first, second, other]) == [[0], [1], ["x"]]
    assert queue.claim(10, worker="w") == []
    queue.nack(second, delay=60)
    assert values(queue.claim(10, worker="w")) == [[2]]
    assert values(queue.claim(10, done=[first], worker="w")) == [[3]]


def test_each_value_of_an_argument_has_a_limit_for_itself(queue):
    limited = task(limits=[Limit(concurrency=1, by=("tenant_id",))], concurrency=3)(work)
    for tenant in (1, 1, 2, 2, 3, 4):
        limited.enqueue(tenant)
    jobs = queue.claim(10, worker="w")
    assert values(jobs) == [[1], [2], [3]]
    queue.ack(jobs[1])
    assert values(queue.claim(10, worker="w")) in ([[4]], [[2]])


@pytest.mark.parametrize("end", ["ack", "nack", "sign_off", "dead", "claim"])
def test_end_of_a_job_makes_room_whatever_it_is(queue, end):
    limited = task(concurrency=1)(work)
    limited.enqueue(0)
    limited.enqueue(1)
    (job,) = queue.claim(10, worker="w")
    assert queue.claim(10, worker="other") == []
    if end == "sign_off":
        queue.sign_off(worker="w")
        assert values(queue.claim(10, worker="other")) == [[0]]
        return
    done = []
    if end == "ack":
        queue.ack(job)
    elif end == "claim":
        done = [job]
    else:
        queue.nack(job, delay=60, max_attempts=1 if end == "dead" else None)
    assert values(queue.claim(10, worker="w", done=done)) == [[1]]


def test_starts_follow_the_rate_and_workers_sleep_until_the_next_one(queue):
    limited = task(rate="10/s")(work)
    for value in range(30):
        limited.enqueue(value)
    begun, waits, until = [], 0, time.monotonic() + 1.55
    while time.monotonic() < until:
        claimed = queue.run_flow(claim.claim(queue, 10, "w"))
        begun += claimed.jobs
        assert claimed.next is not None
        waits += 1
        time.sleep(claimed.next)
    assert 16 <= len(begun) <= 18  # one may start early
    assert waits <= 2 * len(begun)
    assert [job.payload["args"][0] for job in begun] == list(range(len(begun)))
    assert queue.counts().ready + queue.counts().scheduled == 30 - len(begun)


def test_tenants_share_the_rate_of_their_task_in_turn(queue):
    limited = task(rate="1000/s")(work)
    for tenant in (1, 1, 1, 2, 2, 2, 3, 3, 3):
        limited.using(group=f"tenant:{tenant}").enqueue(tenant)
    order = []
    until = time.monotonic() + 5
    while len(order) < 9 and time.monotonic() < until:
        order += [job.payload["args"][0] for job in queue.claim(2, worker="w")]
    assert order == [1, 2, 3] * 3


def test_settings_limit_groups_and_a_whole_queue(kit, queue):
    options = {"GROUP_CONCURRENCY": 1, "CONCURRENCY": 3}
    kit.options(QUEUES={"QUEUE_OPTIONS": {"default": options}})
    for group in ("a", "a", "b", "b", None, None):
        queue.put(group, group=group)
    jobs = queue.claim(10, worker="w")
    assert sorted(str(job.payload) for job in jobs) == ["None", "a", "b"]
    kit.options(QUEUES={"QUEUE_OPTIONS": {"default": {**options, "CONCURRENCY": 4}}})
    queue.put(None)
    assert [job.payload for job in queue.claim(10, worker="w")] == [None]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"concurrency": -1}, InvalidValue, "concurrency must be a whole number from 0"),
        ({"concurrency": True}, InvalidValue, "concurrency must be"),
        ({"rate": "often"}, InvalidRate, "Write a rate as"),
        ({"rate": "5/m; 100/h"}, InvalidValue, "A limit has one rate without a burst"),
        ({"rate": "5/m burst 10"}, InvalidValue, "A limit has one rate without a burst"),
        ({"limits": [Limit()]}, InvalidValue, "needs concurrency"),
        ({"limits": ["10/s"]}, InvalidValue, "limits must be a list of"),
        ({"limits": [Limit(rate="1/s", by=("tenant",))]}, InvalidValue, "Did you mean 'tenant_id'"),
        ({"limits": [Limit(rate="1/s", by="tenant_id")]}, InvalidValue, r"Write \('tenant_id',\)"),
        ({"limits": [Limit(rate="1/s"), Limit(concurrency=1)]}, InvalidValue, "Two limits"),
        ({"concurrency": 1, "limits": [Limit(rate="1/s")]}, InvalidValue, "Two limits"),
    ],
)
def test_wrong_limit_is_an_error_that_says_what_is_allowed(options, error, text):
    with pytest.raises(error, match=text):
        task(**options)(work)


@pytest.mark.parametrize(
    "options",
    [{"RATE": "5/x"}, {"GROUP_RATE": "1/s; 2/m"}, {"CONCURRENCY": 0}, {"GROUP_CONCURENCY": 1}],
)
def test_wrong_limit_in_the_settings_is_an_error_of_the_first_call(kit, queue, options):
    kit.options(QUEUES={"QUEUE_OPTIONS": {"default": options}})
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        queue.put(1)


def test_rate_of_zero_allows_nothing(queue):
    task(rate="0/s")(work).enqueue(1)
    assert queue.claim(10, worker="w") == []
