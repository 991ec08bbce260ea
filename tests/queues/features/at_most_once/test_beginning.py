"""The note that a job begins: by one claim, which holds."""

import pytest

from redis_kit.core.errors import KeyConflict
from redis_kit.core.flow import single
from redis_kit.queues import Queue
from redis_kit.queues.engine.calls import claim_of
from redis_kit.queues.features.at_most_once import middleware


@pytest.fixture
def queue(kit):
    return Queue("mail")


def claim(queue, worker="w"):
    (job,) = queue.claim(worker=worker)
    return job


def begin(queue, job):
    return queue.run_flow(single(middleware.BEGIN(queue.key(""), *claim_of(job))))


def test_job_begins_by_one_claim_which_may_repeat_it(queue):
    queue.put("a")
    first = claim(queue)
    assert [begin(queue, first), begin(queue, first)] == [middleware.BEGINS, middleware.BEGINS]
    queue.sign_off(worker="w")
    assert begin(queue, first) == middleware.LOST
    second = claim(queue, "other")
    assert second.id == first.id
    assert [begin(queue, second), begin(queue, second)] == [middleware.HAS_BEGUN, middleware.HAS_BEGUN]


def test_claim_that_was_returned_unbegun_leaves_nothing(queue, kit):
    queue.put("a")
    claim(queue)
    queue.sign_off(worker="w")
    assert begin(queue, claim(queue, "other")) == middleware.BEGINS


def test_retry_by_hand_does_not_let_it_begin_again(queue):
    queue.put("a")
    job = claim(queue)
    begin(queue, job)
    queue.nack(job, max_attempts=1)
    assert queue.requeue() == 1
    assert begin(queue, claim(queue)) == middleware.HAS_BEGUN


def test_notes_of_ended_jobs_make_room(queue, kit):
    for number in range(50):
        queue.put(number)
        job = claim(queue)
        assert begin(queue, job) == middleware.BEGINS
        queue.ack(job)
    assert kit.client.hlen(queue.key("begun")) <= 2
    assert kit.client.ttl(queue.key("begun")) > 59 * 24 * 3600


def test_key_of_a_wrong_type_refuses_and_changes_nothing(queue, kit):
    queue.put("a")
    job = claim(queue)
    kit.client.set(queue.key("begun"), "x")
    with pytest.raises(KeyConflict, match="begun"):
        begin(queue, job)
    kit.client.delete(queue.key("begun"))
    assert begin(queue, job) == middleware.BEGINS
