"""No job is lost, and none has two outcomes, while workers and the server are killed: at random, and at each step."""

from dataclasses import replace

import pytest

from tests.chaos.engine.program import Outcome
from tests.chaos.queues import kill_loop
from tests.chaos.queues.kill_loop import Plan
from tests.chaos.queues.support import checker
from tests.chaos.queues.support.fault_injector import ROUND, SUPERVISED, FaultInjector
from tests.fixtures import failpoints
from tests.queues.support.journal import LASTING, QUICK

pytestmark = [pytest.mark.alone(40), pytest.mark.once]

# These jobs are run here, and a worker without children can't come to the points of a supervisor.
ELSEWHERE = ("handed_over", *(() if SUPERVISED else ("forked", *failpoints.SUPERVISOR[1:])))
POINTS = [point for point in failpoints.POINTS if point not in ELSEWHERE]

BUGGY_WORKER = ("-m", "tests.chaos.queues.support.buggy_worker")
FOUND_BY = {
    "ack_first": checker.lost,
    "pop": checker.lost,
    "ack_twice": checker.double,
    "do_twice": checker.unexplained,
    "drop_outcome": checker.lost,
    "late_lease": checker.late,
    "poison_at_once": checker.lost,
}
UNHURT = ("ack_twice", "do_twice", "drop_outcome")  # these show when nobody dies
# Not all of the load is as short as elsewhere, so that there is something to interrupt.
BUSY = {"nothing": 15, "kept": 10, "short": 10, "short_async": 10, "long": 20, "steady": 20, "flaky": 6, "delayed": 7}
BUSY = {**BUSY, "doomed": 2}
HANDFUL = {"nothing": 2, "kept": 2, "steady": 2, "flaky": 3, "short_async": 1}


@pytest.mark.timeout(180)
def test_no_job_is_lost_while_workers_and_the_server_are_killed():
    plan = Plan(jobs=600, rate=100, threads=4, mix=BUSY, seed=7, least=len(ROUND), calm=(0.6, 1.0), leases=LASTING)
    outcome = kill_loop.run(plan)
    outcome.check()
    wanted = set(ROUND) if SUPERVISED else {"machine", "server"}
    assert {kill.kind for kill in outcome.facts["case"].kills} == wanted
    assert any(True for _ in checker.interrupted(outcome.facts["case"]))


@pytest.mark.parametrize("point", POINTS)
def test_no_job_is_lost_when_a_process_dies_at(point, tmp_path):
    plan = Plan(
        jobs=10,
        mix=HANDFUL,
        threads=2,
        workers=1,
        most=0,
        seed=1,
        leases=QUICK,
        child=10,
        spare=20,  # the only supervisor has to start again
        patience=40,
        keep=tmp_path,
        environment={failpoints.POINT: point},
    )
    kill_loop.run(plan, during=kill_a_child if point in failpoints.SUPERVISOR[1:] else None).check()
    assert (tmp_path / "once").exists(), "nobody came to that point"


def kill_a_child(injector: FaultInjector) -> None:
    """Give the supervisor a reason to act."""
    injector.kill("child")


def test_job_that_takes_six_leases_runs_once():
    outcome = kill_loop.run(Plan(jobs=1, mix={"lasting": 1}, lasting=3.6, threads=1, most=0, leases=QUICK))
    outcome.check()
    assert len(outcome.facts["case"].runs[1]) == 1


def test_checker_finds_nothing_without_a_bug():
    run_buggy("none", spare=20, patience=30).check()


@pytest.mark.seeded
@pytest.mark.parametrize("bug", FOUND_BY)
def test_seeded_bug_is_found(bug):
    outcome = run_buggy(bug)
    assert list(FOUND_BY[bug](outcome.facts["case"])), str(outcome)


def run_buggy(bug: str, *, patience: float = 1.5, spare: float = 0.6) -> Outcome:
    """Let a worker do long jobs one by one, with a bug, and kill it where that makes a difference; another follows."""
    leases = {"HEARTBEAT_INTERVAL": 0.1, "WORKER_TIMEOUT": 0.4}
    environment = {"DJANGO_SETTINGS_MODULE": "tests.chaos.settings"}
    load = Plan(jobs=15, mix={"long": 1}, leases=leases, environment=environment, patience=patience, spare=spare)
    workers = {"workers": 1, "processes": 1, "threads": 1, "command": (*BUGGY_WORKER, bug)}
    kills = {"kills": ("machine",), "most": 0 if bug in UNHURT else 1, "busy": 100, "calm": (0.1, 0.2)}
    return kill_loop.run(replace(load, **workers, **kills))
