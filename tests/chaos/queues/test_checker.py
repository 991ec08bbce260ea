"""The checker of the kill tests: each check finds what it is for in a history made by hand, nothing in a clean one."""

from typing import Any

import pytest

from redis_kit.queues import QueueCounts
from tests.chaos.queues.support import checker
from tests.chaos.queues.support.checker import Case
from tests.chaos.queues.support.executions import SECOND
from tests.chaos.queues.support.fault_injector import Kill
from tests.chaos.queues.support.final_state import State
from tests.chaos.queues.support.history import Entry
from tests.chaos.queues.support.load import Sent

WITHIN = {"child": 1.0, "supervisor": 12.0, "machine": 12.0}
JOBS = (Sent(1, "kept", "a"), Sent(2, "nothing", "b"), Sent(3, "doomed", "c"))


def ran(number: int, begin: float, end: float | None, *, pid: int = 7, how: Any = "end") -> list[Entry]:
    """Return the lines of an execution, from one second to another; without an end it was interrupted."""
    times = [(begin, "begin")] + ([] if end is None else [(end, how)])
    return [Entry(number, pid, int(at * SECOND), phase) for at, phase in times]


def killed(at: float, kind: Any = "child", *, pids: tuple[int, ...] = (7,), slots: int = 1, until: float = 0) -> Kill:
    """Return a kill."""
    return Kill(kind, int(at * SECOND), int((until or at) * SECOND), frozenset(pids), slots, 1)


def case(*executions: list[Entry], kills: tuple[Kill, ...] = (), sent: tuple[Sent, ...] = JOBS, **changes: Any) -> Case:
    """Return a case in which the three jobs came to their ends, but for the changes."""
    usual = {
        "counts": QueueCounts(0, 0, 0, 1),
        "jobs": frozenset("c"),
        "dead": {"c": "Declared: each attempt"},
        "status": {"a": "SUCCESSFUL", "c": "FAILED"},
        "done": 2,
        "workers": 0,
    }
    lines = sorted((entry for part in executions for entry in part), key=lambda entry: entry.at)
    state = State(**{**usual, **changes})  # type: ignore[arg-type]
    return Case(sent=sent, history=lines, kills=kills, state=state, within=WITHIN, lease=10.0)


FIRST, SECOND_JOB = ran(1, 1, 2), ran(2, 1, 2)
THIRD = ran(3, 1, 2, how="raise") + ran(3, 3, 4, how="raise")
REST = (SECOND_JOB, THIRD)
INTERRUPTED = ran(1, 1, None)


def found(check: Any, *executions: list[Entry], **given: Any) -> list[str]:
    """Return what a check finds."""
    return list(check(case(*executions, **given)))


@pytest.mark.parametrize("check", checker.CHECKS, ids=lambda check: check.__name__)
def test_clean_history_passes(check):
    assert not found(check, FIRST, *REST)
    assert not found(check, INTERRUPTED, ran(1, 2.9, 3, pid=8), *REST, kills=(killed(2),))


def test_job_without_an_outcome_is_found():
    assert found(checker.lost, FIRST, *REST, status={"c": "FAILED"})
    assert found(checker.lost, FIRST, THIRD)
    assert found(checker.lost, FIRST, ran(2, 1, None), THIRD)
    assert found(checker.lost, FIRST, *REST, jobs=frozenset("bc"))


def test_job_that_was_recorded_and_not_done_is_found():
    assert found(checker.lost, INTERRUPTED, *REST)
    assert found(checker.lost, FIRST, SECOND_JOB)


def test_dead_job_that_did_not_fail_is_found():
    assert found(checker.lost, FIRST, *REST, dead={"a": "Other: why", "c": ""})
    assert found(checker.lost, FIRST, *REST, status={"a": "SUCCESSFUL"})


def test_poison_takes_as_many_kills_as_the_setting_says():
    its = [ran(1, at, None, pid=pid) for at, pid in ((1, 7), (3, 8), (5, 9))]
    kills = tuple(killed(at, pids=(pid,)) for at, pid in ((2, 7), (4, 8), (6, 9)))
    poison = {"a": "poison: 3 processes died in which it ran alone", "c": ""}
    status = {"a": "FAILED", "c": "FAILED"}
    assert not found(checker.lost, *its, *REST, kills=kills, dead=poison, status=status)
    assert not found(checker.late, *its, *REST, kills=kills, dead=poison, status=status)
    assert found(checker.lost, *its[:2], *REST, kills=kills[:2], dead=poison, status=status)


def test_second_outcome_is_found():
    assert found(checker.double, FIRST, *REST, dead={"a": "why", "c": ""})
    assert found(checker.double, FIRST, *REST, done=3)
    assert found(checker.double, FIRST, *REST, done=1)


def test_job_whose_answer_got_lost_may_be_there_or_not():
    sent = (*JOBS, Sent(4, "kept", None))
    assert not found(checker.double, FIRST, *REST, sent=sent)
    assert not found(checker.double, FIRST, *REST, ran(4, 1, 2), sent=sent, done=3)
    assert found(checker.double, FIRST, *REST, ran(4, 1, 2), sent=sent, done=2)
    assert not found(checker.lost, FIRST, *REST, sent=sent)


def test_execution_without_a_reason_is_found():
    assert found(checker.unexplained, FIRST, ran(1, 3, 4, pid=8), *REST)
    assert found(checker.unexplained, FIRST, ran(1, 3, 4, pid=8), *REST, kills=(killed(5),))
    assert not found(checker.unexplained, FIRST, ran(1, 3, 4, pid=8), *REST, kills=(killed(2),))


def test_execution_of_a_job_that_was_done_long_before_is_found():
    assert found(checker.unexplained, FIRST, ran(1, 4, 5, pid=8), *REST, kills=(killed(3, "machine"),))
    assert not found(checker.unexplained, FIRST, ran(1, 3, 4, pid=8), *REST, kills=(killed(2.4, "machine"),))
    outage = killed(1.5, "server", until=2.5)
    assert not found(checker.unexplained, FIRST, ran(1, 4, 5, pid=8), *REST, kills=(outage, killed(3, "machine")))


def test_what_a_machine_had_not_told_counts_as_no_slot():
    again = ran(1, 3, 4, pid=8) + ran(2, 3, 4, pid=8)
    assert not found(checker.unexplained, FIRST, *REST, again, kills=(killed(2, "machine"),))
    cut = [INTERRUPTED, ran(2, 1, None)]
    assert found(checker.unexplained, *cut, THIRD, again, kills=(killed(2, "machine"),))


def test_more_executions_again_than_a_process_had_slots_are_found():
    again = ran(1, 3, 4, pid=8) + ran(2, 3, 4, pid=8)
    assert found(checker.unexplained, FIRST, *REST, again, kills=(killed(2),))
    assert not found(checker.unexplained, FIRST, *REST, again, kills=(killed(2, slots=2),))


def test_job_that_is_left_lying_is_found():
    assert found(checker.late, INTERRUPTED, *REST)
    assert found(checker.late, INTERRUPTED, *REST, kills=(killed(2),))


@pytest.mark.parametrize(("kind", "limit"), [("child", 1), ("supervisor", 12), ("machine", 12)])
def test_job_that_begins_again_too_late_is_found(kind, limit):
    kills = (killed(2, kind),)
    assert not found(checker.late, INTERRUPTED, ran(1, 1.9 + limit, 20, pid=8), *REST, kills=kills)
    assert found(checker.late, INTERRUPTED, ran(1, 2.1 + limit, 20, pid=8), *REST, kills=kills)


def test_outage_of_the_server_and_another_kill_give_time():
    late = ran(1, 3.5, 4, pid=8)
    for other in (killed(2.5, "server", until=3), killed(2.9, pids=(9,))):
        assert not found(checker.late, INTERRUPTED, late, *REST, kills=(killed(2), other))
    assert found(checker.late, INTERRUPTED, late, *REST, kills=(killed(2), killed(3.2, pids=(9,))))


def test_whatever_is_left_is_found():
    assert found(checker.left, counts=QueueCounts(0, 0, 1, 1))
    assert found(checker.left, jobs=frozenset("cd"))
    assert found(checker.left, workers=1)
    assert found(checker.left, left=("a:running",))
