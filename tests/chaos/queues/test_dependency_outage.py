"""A service that tasks need is away: the defaults outlast that."""

import pytest

from tests.chaos.queues import dependency_outage
from tests.chaos.queues.dependency_outage import FORMER, Plan

pytestmark = [pytest.mark.alone(15), pytest.mark.once]


@pytest.mark.timeout(180)
def test_no_job_dies_in_an_hour_without_another_service():
    outcome = dependency_outage.run(Plan(60, minutes=60, scale=600))
    outcome.check()
    assert min(outcome.facts["attempts"]) > 3


@pytest.mark.seeded
@pytest.mark.timeout(180)
def test_former_defaults_are_found_to_lose_the_jobs():
    outcome = dependency_outage.run(Plan(60, scale=600, options=FORMER))
    assert outcome.facts["dead"] == 60
