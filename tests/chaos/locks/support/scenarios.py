"""Scenarios in which bugs show, each time."""

import time
from collections.abc import Callable

from tests.chaos.locks.support.checkers import QUEUED
from tests.chaos.locks.support.scenario_runner import LEASE, WORKERS, Scenario, ScenarioRunner

OVER = LEASE + 0.1  # after so many seconds a lease has ended
ONCE = {"blocking": False}
WAITING = {"blocking_timeout": 10}
SCENARIOS: dict[str, Scenario] = {}

ScenarioSteps = Callable[[ScenarioRunner], None]


def _scenario(*kinds: str, buggy: str = WORKERS) -> Callable[[ScenarioSteps], ScenarioSteps]:
    def keep(steps: ScenarioSteps) -> ScenarioSteps:
        for kind in kinds:
            name = steps.__name__ if len(kinds) == 1 else f"{steps.__name__}:{kind}"
            SCENARIOS[name] = Scenario(steps, kind, buggy)
        return steps

    return keep


@_scenario("lock")
def late_release(runner: ScenarioRunner) -> None:
    """One writes and releases when its lease has ended and another one holds the lock; a third one comes."""
    assert runner.do("a", "take")
    assert runner.do("b", "take", **WAITING)
    assert runner.do("b", "write")
    runner.do("a", "write", careful=False)
    runner.do("a", "let_go")
    runner.do("c", "take", **ONCE)
    runner.do("b", "let_go")


@_scenario("lock")
def late_extension(runner: ScenarioRunner) -> None:
    """One extends when its lease has ended and another one holds the lock."""
    assert runner.do("a", "take")
    assert runner.do("b", "take", **WAITING)
    runner.do("a", "extend")
    runner.do("b", "let_go")


@_scenario("lock")
def gap(runner: ScenarioRunner) -> None:
    """One extends when its lease has ended, another one has come and gone, and nobody holds the lock."""
    assert runner.do("a", "take")
    assert runner.do("b", "take", **WAITING)
    assert runner.do("b", "let_go")
    runner.do("a", "extend")


@_scenario("semaphore")
def late_slot(runner: ScenarioRunner) -> None:
    """One extends when its lease has ended and others have both slots."""
    assert runner.do("a", "take")
    time.sleep(OVER)
    assert runner.do("b", "take")
    assert runner.do("c", "take")
    runner.do("a", "extend")


@_scenario("lock")
def lost_reply(runner: ScenarioRunner) -> None:
    """A worker takes a free lock, and the reply is lost."""
    assert runner.do("a", "take")
    assert runner.do("a", "let_go")
    with runner.one_reply_lost():
        runner.tell("a", "take", **ONCE)
    assert not runner.answer("a")


@_scenario("lock", "fairlock", "rwlock", "weighted")
def dead_holder(runner: ScenarioRunner) -> None:
    """One is killed while it holds the lock. When its lease and 0.2 s are over, another one comes."""
    assert runner.do("a", "take", options=runner.whole)
    runner.kill("a")
    time.sleep(LEASE + 0.2)
    runner.do("b", "take", options=runner.whole, **ONCE)


@_scenario("lock")
def lost_data(runner: ScenarioRunner) -> None:
    """The server loses all that it knew."""
    assert runner.do("a", "take")
    assert runner.do("a", "let_go")
    runner.server.flush()
    assert runner.do("b", "take")


@_scenario("lock")
def late_reply(runner: ScenarioRunner) -> None:
    """The reply comes when the lease has begun long ago."""
    assert runner.do("a", "take")
    assert runner.do("a", "let_go")
    with runner.proxy.fault("delay", seconds=0.05):
        assert runner.do("a", "take", **ONCE)


@_scenario("semaphore", buggy="c")
def fast_clock(runner: ScenarioRunner) -> None:
    """One whose clock runs ahead comes when both slots are in use."""
    assert runner.do("a", "take")
    assert runner.do("b", "take")
    runner.do("c", "take", **ONCE)


@_scenario("semaphore")
def rush(runner: ScenarioRunner) -> None:
    """Three want one of two slots at the same moment."""
    for worker in WORKERS:
        runner.tell(worker, "take", options={"timeout": 5}, **ONCE)
    answers = [runner.answer(worker) for worker in WORKERS]
    assert any(answers)


@_scenario("weighted")
def heavy(runner: ScenarioRunner) -> None:
    """Two want three of five slots each."""
    assert runner.do("a", "take", options={"weight": 3})
    runner.do("b", "take", options={"weight": 3}, **ONCE)


@_scenario("rwlock")
def reader_and_writer(runner: ScenarioRunner) -> None:
    """One wants to write while another one reads."""
    assert runner.do("a", "take", options={"write": False})
    runner.do("b", "take", options={"write": True}, **ONCE)


@_scenario("fairsemaphore")
def queue(runner: ScenarioRunner) -> None:
    """One wants both slots, of which one is free; while it waits another one comes, for which that would do."""
    assert runner.do("a", "take", options={"timeout": 5})
    runner.tell("b", "take", options={"weight": 2}, **WAITING)
    runner.wait_for_waiters("b")
    time.sleep(QUEUED / 1e9)
    if runner.do("c", "take", **ONCE):
        runner.do("c", "let_go")
    runner.do("a", "let_go")
    assert runner.answer("b")


@_scenario("lock", "fairlock", "weighted")
def sleeper(runner: ScenarioRunner) -> None:
    """One is paused while it waits, is given the lock, and goes on when its lease is over and another one is there."""
    assert runner.do("a", "take", options=runner.whole)
    runner.tell("b", "take", options=runner.whole, **WAITING)
    runner.wait_for_waiters("b")
    with runner.paused("b"):
        assert runner.do("a", "let_go")
        time.sleep(OVER)
        assert runner.do("c", "take", options=runner.whole, **WAITING)
    assert runner.answer("b")


@_scenario("fairlock", "rwlock")
def in_order(runner: ScenarioRunner) -> None:
    """One after another comes to wait."""
    assert runner.do("a", "take", options=runner.whole | {"timeout": 5})
    runner.tell("b", "take", options=runner.whole, **WAITING)
    runner.wait_for_waiters("b")
    time.sleep(QUEUED / 1e9)
    runner.tell("c", "take", options=runner.whole, **WAITING)
    runner.wait_for_waiters("b", "c")
    runner.do("a", "let_go")
    assert runner.answer("b")
    runner.do("b", "let_go")
    assert runner.answer("c")
