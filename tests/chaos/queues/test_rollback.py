"""A server that loses its last two seconds, and a replica that lacked them: what ended is ended again."""

import pytest

from tests.chaos.queues import rollback
from tests.chaos.queues.rollback import Plan

pytestmark = [pytest.mark.alone(25), pytest.mark.once, pytest.mark.timeout(180)]

FORGETFUL = ("-m", "tests.chaos.queues.support.buggy_reconciliation", *rollback.COMMAND[2:])


@pytest.mark.parametrize("how", rollback.SERVERS)
def test_nothing_is_stuck_nor_lost_beyond_what_the_server_lost(how):
    outcome = rollback.run_one(Plan(1, how=how, rate=80, workers=1, seed=5))
    outcome.check()
    case = outcome.facts["case"]
    assert any(put.sent > case.losses[0].died for put in case.puts)
    assert case.settled_again() or case.repeats()


@pytest.mark.seeded
def test_worker_that_does_not_compare_is_found():
    assert rollback.run_one(Plan(1, workers=1, seed=5, patience=4.0, command=FORGETFUL)).found["stuck"]
