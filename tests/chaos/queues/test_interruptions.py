"""No job is left running, none fails for another one, no connection is lost, wherever a task is interrupted."""

import re

import pytest

from tests.chaos.queues.support.interruption_bugs import BUGS
from tests.fixtures.fork_server import run_python

pytestmark = [pytest.mark.alone(30), pytest.mark.once, pytest.mark.timeout(180)]


def interrupt(count, *more):
    """Interrupt about so many jobs in a process of its own; return its exit code and what it found."""
    command = ["-m", "tests.chaos", "queues.interruptions", str(count), *map(str, more)]
    done = run_python(command, timeout=170)
    print(done.stdout, done.stderr[-4000:])
    return done.returncode, done.stdout


def test_tasks_are_interrupted_at_each_place_of_a_call_and_at_any_time():
    code, said = interrupt(160, "--seed", 7)
    assert code == 0
    assert "0 wrong" in said
    assert all(int(re.search(f"{kind} ([0-9]+)", said)[1]) > 10 for kind in ("TaskTimeout", "Cancelled"))


@pytest.mark.seeded
@pytest.mark.parametrize("bug", BUGS)
def test_bug_that_was_put_in_is_found(bug):
    _, what, count = BUGS[bug]
    code, said = interrupt(count, "--seed", 1, "--bug", bug)
    assert code == 1
    assert what in said
