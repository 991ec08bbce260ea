"""Scenes in which bugs show, each time."""

import time
from collections.abc import Callable

from tests.chaos.locks.support.checkers import QUEUED
from tests.chaos.locks.support.scenario_runner import CAST, LEASE, Scene, Stage

OVER = LEASE + 0.1  # after so many seconds a lease has ended
ONCE = {"blocking": False}
WAITING = {"blocking_timeout": 10}
SCENES: dict[str, Scene] = {}

Happens = Callable[[Stage], None]


def _scene(*kinds: str, buggy: str = CAST) -> Callable[[Happens], Happens]:
    def keep(happens: Happens) -> Happens:
        for kind in kinds:
            name = happens.__name__ if len(kinds) == 1 else f"{happens.__name__}:{kind}"
            SCENES[name] = Scene(happens, kind, buggy)
        return happens

    return keep


@_scene("lock")
def late_release(stage: Stage) -> None:
    """One writes and releases when its lease has ended and another one holds the lock; a third one comes."""
    assert stage.do("a", "take")
    assert stage.do("b", "take", **WAITING)
    assert stage.do("b", "write")
    stage.do("a", "write", careful=False)
    stage.do("a", "let_go")
    stage.do("c", "take", **ONCE)
    stage.do("b", "let_go")


@_scene("lock")
def late_extension(stage: Stage) -> None:
    """One extends when its lease has ended and another one holds the lock."""
    assert stage.do("a", "take")
    assert stage.do("b", "take", **WAITING)
    stage.do("a", "extend")
    stage.do("b", "let_go")


@_scene("lock")
def gap(stage: Stage) -> None:
    """One extends when its lease has ended, another one has come and gone, and nobody holds the lock."""
    assert stage.do("a", "take")
    assert stage.do("b", "take", **WAITING)
    assert stage.do("b", "let_go")
    stage.do("a", "extend")


@_scene("semaphore")
def late_slot(stage: Stage) -> None:
    """One extends when its lease has ended and others have both slots."""
    assert stage.do("a", "take")
    time.sleep(OVER)
    assert stage.do("b", "take")
    assert stage.do("c", "take")
    stage.do("a", "extend")


@_scene("lock")
def lost_reply(stage: Stage) -> None:
    """The reply to one who takes a free lock is lost."""
    assert stage.do("a", "take")
    assert stage.do("a", "let_go")
    with stage.one_reply_lost():
        stage.tell("a", "take", **ONCE)
    assert not stage.answer("a")


@_scene("lock", "fairlock", "rwlock", "weighted")
def dead_holder(stage: Stage) -> None:
    """One is killed while it holds the lock. When its lease and 0.2 s are over, another one comes."""
    assert stage.do("a", "take", options=stage.whole)
    stage.kill("a")
    time.sleep(LEASE + 0.2)
    stage.do("b", "take", options=stage.whole, **ONCE)


@_scene("lock")
def lost_data(stage: Stage) -> None:
    """The server loses all that it knew."""
    assert stage.do("a", "take")
    assert stage.do("a", "let_go")
    stage.server.flush()
    assert stage.do("b", "take")


@_scene("lock")
def late_reply(stage: Stage) -> None:
    """The reply comes when the lease has begun long ago."""
    assert stage.do("a", "take")
    assert stage.do("a", "let_go")
    with stage.proxy.fault("delay", seconds=0.05):
        assert stage.do("a", "take", **ONCE)


@_scene("semaphore", buggy="c")
def fast_clock(stage: Stage) -> None:
    """One whose clock runs ahead comes when both slots are in use."""
    assert stage.do("a", "take")
    assert stage.do("b", "take")
    stage.do("c", "take", **ONCE)


@_scene("semaphore")
def rush(stage: Stage) -> None:
    """Three want one of two slots at the same moment."""
    for who in CAST:
        stage.tell(who, "take", **ONCE)
    answers = [stage.answer(who) for who in CAST]
    assert any(answers)


@_scene("weighted")
def heavy(stage: Stage) -> None:
    """Two want three of five slots each."""
    assert stage.do("a", "take", options={"weight": 3})
    stage.do("b", "take", options={"weight": 3}, **ONCE)


@_scene("rwlock")
def reader_and_writer(stage: Stage) -> None:
    """One wants to write while another one reads."""
    assert stage.do("a", "take", options={"write": False})
    stage.do("b", "take", options={"write": True}, **ONCE)


@_scene("fairsemaphore")
def queue(stage: Stage) -> None:
    """One wants both slots, of which one is free; while it waits another one comes, for which that would do."""
    assert stage.do("a", "take", options={"timeout": 5})
    stage.tell("b", "take", options={"weight": 2}, **WAITING)
    stage.wait_for_waiters("b")
    time.sleep(QUEUED / 1e9)
    if stage.do("c", "take", **ONCE):
        stage.do("c", "let_go")
    stage.do("a", "let_go")
    assert stage.answer("b")


@_scene("lock", "fairlock", "weighted")
def sleeper(stage: Stage) -> None:
    """One is paused while it waits, is given the lock, and goes on when its lease is over and another one is there."""
    assert stage.do("a", "take", options=stage.whole)
    stage.tell("b", "take", options=stage.whole, **WAITING)
    stage.wait_for_waiters("b")
    with stage.paused("b"):
        assert stage.do("a", "let_go")
        time.sleep(OVER)
        assert stage.do("c", "take", options=stage.whole, **WAITING)
    assert stage.answer("b")


@_scene("fairlock", "rwlock")
def in_order(stage: Stage) -> None:
    """One after another comes to wait."""
    assert stage.do("a", "take", options=stage.whole | {"timeout": 5})
    stage.tell("b", "take", options=stage.whole, **WAITING)
    stage.wait_for_waiters("b")
    time.sleep(QUEUED / 1e9)
    stage.tell("c", "take", options=stage.whole, **WAITING)
    stage.wait_for_waiters("b", "c")
    stage.do("a", "let_go")
    assert stage.answer("b")
    stage.do("b", "let_go")
    assert stage.answer("c")
