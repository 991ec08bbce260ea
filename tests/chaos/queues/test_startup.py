"""Signals while a worker starts: none is lost, at whichever line of its code it comes."""

import pytest

from tests.chaos.queues import startup
from tests.chaos.queues.support import line_signals
from tests.chaos.queues.support.workers import ROOT

pytestmark = [pytest.mark.alone(15), pytest.mark.once]

SIGNALLING = f"{line_signals.FOLDER}/worker/supervisor/os_signals.py"
FIRST = "TERM"


@pytest.mark.timeout(240)
def test_no_signal_is_lost_at_any_line_that_changes_who_takes_them():
    startup.run(startup.Plan(at=tuple(range(40, 116, 25)), files=SIGNALLING, signals=FIRST)).check()


@pytest.mark.seeded
@pytest.mark.timeout(240)
def test_lost_signals_of_a_seeded_bug_are_found():
    file = f"{ROOT}/tests/chaos/queues/support/buggy_signals.py"
    plan = startup.Plan(
        at=(6, 12),
        files=file,
        signals=FIRST,
        command=("-m", "tests.chaos.queues.support.buggy_signals", "rk_worker", "--queue-name", "default"),
        environment={"DJANGO_SETTINGS_MODULE": "tests.chaos.queues.support.startup_settings"},
        patience=2.0,
    )
    assert startup.run(plan).found["hanging"]


def test_interrupt_in_the_start_of_python_is_no_violation():
    log = "Fatal Python error: init_import_site: Failed to import the site module\n"
    assert startup.is_allowed(1, ("", "INT"), log)
    assert not startup.is_allowed(1, ("", "INT"), "KeyboardInterrupt\n")
    assert not startup.is_allowed(1, ("", "TERM"), log)
