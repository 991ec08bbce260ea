"""No call whose transaction was committed is lost, whatever is killed on its way through the outbox."""

import pytest

from tests.fixtures.fork_server import run_python

pytestmark = [pytest.mark.alone(15), pytest.mark.once, pytest.mark.timeout(180)]


def test_calls_of_committed_transactions_are_delivered_and_no_others():
    done = run_python(["-m", "tests.chaos", "queues.outbox_kills", "150", "--seed", "7"], timeout=170)
    print(done.stdout, done.stderr[-4000:])
    assert done.returncode == 0
    assert "150 calls committed" in done.stdout
