"""Workers of two releases side by side, and one after the other: no job is lost, dead, or late."""

import pytest

from tests.chaos.queues import rollout
from tests.chaos.queues.support.workers import COMMAND

pytestmark = [pytest.mark.alone(25), pytest.mark.once]
ONE_WAY = {"jobs": 60, "rate": 100, "rounds": 0, "seed": 5}  # jobs of both releases wait for a worker of the new one
FORGETFUL = ("-m", "tests.queues.support.releases.forgetful", *COMMAND[2:])


@pytest.mark.timeout(240)
def test_no_job_is_lost_or_dead_while_releases_are_rolled_out_and_back():
    outcome = rollout.run(rollout.Plan(jobs=300, rate=150, rounds=1, calm=0.6, seed=5))
    outcome.check()
    assert outcome.facts["recalled"] > 20


@pytest.mark.seeded
@pytest.mark.timeout(240)
@pytest.mark.parametrize("bug", ["dead at once", "not recalled"])
def test_seeded_bug_is_found(bug):
    plans = {
        "dead at once": rollout.Plan(options={"UNKNOWN_TASK_TTL": 0}, patience=5, **ONE_WAY),
        "not recalled": rollout.Plan(command=FORGETFUL, patience=3, **ONE_WAY),
    }
    outcome = rollout.run(plans[bug])
    print(outcome)
    assert outcome.violations
    assert bool(outcome.facts["dead"]) == (bug == "dead at once")
