"""What competing processes did: with seeded bugs, which the checkers must find, without, and while all goes wrong."""

import contextlib

import pytest

from tests.chaos.locks import contention
from tests.chaos.locks.contention import Plan
from tests.chaos.locks.support import checkers
from tests.chaos.locks.support.bugs import BUGS
from tests.chaos.locks.support.kinds import KINDS
from tests.chaos.locks.support.leases import holds
from tests.chaos.locks.support.scenario_runner import ScenarioRunner
from tests.chaos.locks.support.scenarios import SCENARIOS
from tests.fixtures.proxy import Proxy

pytestmark = pytest.mark.alone(20)

SEED = 37  # with which a pause and a kill come first
WAITING = ("sleeper", "in_order", "queue", "lost_reply")  # scenarios in which tasks do not do what threads do
CHECKS = [*checkers.ALWAYS, checkers.refused_for_nothing]
ASYNC = {"answer_of_long_ago"}  # bugs that show in tasks alone: where a timer and a reply are due at once
TRIES = 10  # for those
# Those that test_cancellations.py and test_lost_replies.py look for.
OF_SINGLE_CALLS = {
    "clean_up_in_the_cancelled_task",
    "release_that_waits_for_the_reply",
    "release_that_is_sent_once",
}
FOUND_BY = {
    "release_of_any_holder": ("late_release", checkers.overlaps),
    "release_by_del": ("late_release", checkers.outlived),
    "write_without_a_fence": ("late_release", checkers.stale_writes),
    "extension_of_any_holder": ("late_extension", checkers.overlaps_on_the_server),
    "extension_takes_anew": ("gap", checkers.overlaps),
    "slot_taken_anew": ("late_slot", checkers.overlaps),
    "blind_retry": ("lost_reply", checkers.refused_for_nothing),
    "lease_without_end": ("dead_holder:lock", checkers.refused_for_nothing),
    "fence_that_forgets": ("lost_data", checkers.fences),
    "deadline_from_the_reply": ("late_reply", checkers.margins),
    "deadline_without_a_margin": ("late_reply", checkers.margins),
    "answer_of_long_ago": ("sleeper:lock", checkers.overlaps),
    "clock_of_the_client": ("fast_clock", checkers.overlaps),
    "count_then_add": ("rush", checkers.overlaps),
    "weight_that_does_not_count": ("heavy", checkers.overlaps),
    "writer_beside_readers": ("reader_and_writer", checkers.overlaps),
    "barging": ("queue", checkers.barging),
}


@pytest.fixture(scope="module")
def runner(tcp_valkey, tmp_path_factory):
    """Three processes, for all scenarios."""
    proxy = Proxy(tcp_valkey.port)
    with ScenarioRunner(tmp_path_factory.mktemp("scenarios"), server=tcp_valkey, proxy=proxy) as runner:
        yield runner
    proxy.stop()


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_found_without_a_bug(runner, name):
    history = in_time(runner, name)
    assert not [text for check in CHECKS for text in check(history)]


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name.startswith(WAITING)])
def test_nothing_is_found_without_a_bug_in_async_code(runner, name):
    history = in_time(runner, name, run_async=True)
    assert not [text for check in CHECKS for text in check(history)]


def in_time(runner, name, **options):
    """Return the history of a scenario, which runs again if a step was late, as on a busy machine."""
    for _ in range(2):
        with contextlib.suppress(AssertionError):
            return runner.run(SCENARIOS[name], **options)
    return runner.run(SCENARIOS[name], **options)


@pytest.mark.seeded
@pytest.mark.parametrize("bug", FOUND_BY)
def test_seeded_bug_is_found(runner, bug):
    name, check = FOUND_BY[bug]
    tries = TRIES if bug in ASYNC else 3  # a busy machine may let a lease end before its scenario is over
    assert any(is_found(runner, name, bug, check) for _ in range(tries))


def is_found(runner, name, bug, check):
    try:
        history = runner.run(SCENARIOS[name], bug=bug, run_async=bug in ASYNC)
    except AssertionError:  # a step of the scenario ended in another way, as it does without a bug
        return False
    return check(history)


def test_every_bug_is_looked_for():
    assert set(BUGS) == {*FOUND_BY, *OF_SINGLE_CALLS}


def test_nothing_is_found_while_all_goes_wrong():
    outcome = contention.run(Plan(1.6, "all", both=True, seed=SEED, tasks=1, names=1, lease=0.4))
    outcome.check()
    assert {"pause", "kill"} & set(outcome.facts["faults"])
    assert set(KINDS) == {hold.name.partition(":")[0] for hold in holds(outcome.facts["history"])}
