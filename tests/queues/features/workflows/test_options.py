"""Steps of tasks with options of other features: unique tasks, and limits by arguments."""

import pytest

from redis_kit.queues import InvalidWorkflow, Limit, Queue, chain, previous, task
from tests.queues.support.workflow_tasks import work


@task(unique=True)
def unique():
    """One that can't be a step."""


@task(limits=[Limit(concurrency=1, by=("tenant",))])
def limited(tenant, value=None):
    return value


@pytest.mark.parametrize(
    ("part", "error"),
    [
        (lambda: chain(unique.step()), "is unique"),
        (lambda: chain(work.step(1), limited.step(previous)), r"\.limited has a limit by tenant, which is previous in"),
        (lambda: chain(work.step(1), limited.step("a"), limited.step(tenant=[previous])), r"limit by tenant"),
    ],
)
def test_step_of_a_unique_task_or_with_an_unknown_limit_is_refused(kit, part, error):
    with pytest.raises(InvalidWorkflow, match=error):
        part().enqueue()
    assert not Queue("default").counts().ready


def test_steps_have_the_limits_of_their_own_arguments(kit):
    for tenant in "aab":
        chain(limited.step(tenant)).enqueue()
    assert sorted(job.payload["args"][0] for job in Queue("default").claim(10)) == ["a", "b"]
