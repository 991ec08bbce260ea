"""Limits of jobs that another system has."""

import pytest

from redis_kit.queues import Queue, limits
from redis_kit.queues.engine import calls, claim

ENDS = {
    "cancel": lambda queue: queue.cancel("first"),
    "delete": lambda queue: queue.delete("first"),
    "purge": lambda queue: queue.purge("scheduled"),
    "run now": lambda queue: queue.run_now("first"),
    "replace": lambda queue: queue.put("first", unique="u", replace=True, group="b"),
}


@pytest.fixture
def queue(kit):
    """A queue of which one job runs at once."""
    queue = Queue("default")
    queue.put("first", id="first", unique="u", group="a")
    queue.put("second", group="a")
    limits.set_limit("default", "group=a", concurrency=1)
    return queue


def hand_over(queue, *, holds=True):
    """Claim the first job and hand it over."""
    (job,) = queue.claim(9, worker="here")
    assert queue.run_flow(claim.postpone(queue, [(job, 60.0)], holds=holds)) == [True]
    return job


def claimed(queue):
    """Return what can be claimed, and acknowledge it."""
    payloads, more = [], True
    while more:
        jobs, next_in, _ = queue.run_flow(claim.claim(queue, 9, "here"))
        queue.ack(*jobs)
        payloads += [job.payload for job in jobs]
        more = jobs or next_in == 0
    return payloads


def test_job_counts_for_its_limits_from_its_hand_over_to_its_end(queue):
    job = hand_over(queue)
    assert queue.claim(9, worker="here") == []
    queue.run_flow(sweep(queue))
    assert queue.claim(9, worker="here") == []
    assert [limit.running for limit in limits.list_limits("default")] == [1]
    more = {"version": claim.version(job), "token": job.token, "about": "{}"}
    begun = queue.run_flow(claim.claim_by_id(queue, "there", "c", "first", **more))
    assert queue.claim(9, worker="here") == []
    queue.ack(begun)
    assert claimed(queue) == ["second"]


@pytest.mark.parametrize("end", ENDS)
def test_job_that_comes_back_or_is_removed_frees_its_place(queue, end):
    hand_over(queue)
    assert ENDS[end](queue)
    assert set(claimed(queue)) == ({"second"} if end in ("cancel", "delete", "purge") else {"first", "second"})
    assert [limit.running for limit in limits.list_limits("default")] == [0]


def test_job_that_was_refused_frees_its_place(queue):
    hand_over(queue, holds=False)
    assert claimed(queue) == ["second"]


def sweep(queue):
    return (yield calls.sweep(queue.key("")))
