"""Duties and their turns: those that are always due, that fail, or that take long."""

from itertools import pairwise
from math import inf
from time import monotonic, sleep

import pytest

from redis_kit.core.errors import AuthenticationFailed, RedisUnavailable
from redis_kit.queues.worker.shared import failures as module
from redis_kit.queues.worker.shared.failures import AGAIN, FLOOR, Duties


class Work:
    """A duty that notes its name with each run, and is due again after some seconds."""

    def __init__(self, names, name, every=60.0, *, takes=0.0, error=None):
        self.due = 0.0
        self._names, self._name, self._every, self._takes, self._error = names, name, every, takes, error

    def run(self):
        self._names.append(self._name)
        sleep(self._takes)
        if self._error:
            raise self._error
        self.due = monotonic() + self._every


@pytest.fixture
def names():
    return []


def test_empty_list_is_never_due():
    duties = Duties()
    duties.run()
    assert duties.next == inf


def test_duty_that_asks_for_0_seconds_runs_once_in_a_turn(names):
    duties = Duties(Work(names, "always", every=0.0))
    before = monotonic()
    duties.run()
    assert names == ["always"]
    assert before + FLOOR <= duties.next <= monotonic() + FLOOR


def test_duty_that_is_not_due_does_not_run(names):
    work = Work(names, "later")
    work.due = inf
    duties = Duties(work)
    duties.run()
    assert (names, duties.next) == ([], inf)


def test_duty_that_fails_runs_again_and_others_have_their_turn(names, caplog):
    duties = Duties(Work(names, "broken", error=ValueError("no such thing")), Work(names, "fine"))
    duties.run()
    assert names == ["broken", "fine"]
    assert FLOOR < duties.next - monotonic() <= AGAIN
    (record,) = caplog.records
    assert record.getMessage() == "Work of the worker failed; it runs again."
    assert "no such thing" in record.exc_text


def test_failures_are_logged_once_a_minute(names, monkeypatch, caplog):
    monkeypatch.setattr(module, "AGAIN", 0.01)
    duties = Duties(Work(names, "broken", error=ValueError()))
    for _ in range(3):
        duties.run()
        sleep(0.02)
    assert (len(names), len(caplog.records)) == (3, 1)


@pytest.mark.parametrize("error", [RedisUnavailable("away"), AuthenticationFailed("no")])
def test_server_that_does_not_answer_is_asked_once_in_a_turn(names, caplog, error):
    duties = Duties(Work(names, "first", error=error), Work(names, "second", error=error), Work(names, "third"))
    for _ in range(3):
        duties.run()
    assert names == ["first", "second", "third"]
    assert caplog.records == []


def test_duty_that_takes_long_leaves_others_their_turns(names):
    slow = Work(names, "slow", every=0.0, takes=0.05)
    duties = Duties(Work(names, "heartbeat", every=0.0), slow, Work(names, "rare"))
    for _ in range(4):
        duties.run()
        sleep(max(0.0, duties.next - monotonic()))
    assert "rare" in names
    assert {after for before, after in pairwise(names) if before == "slow"} == {"heartbeat"}


def test_turn_ends_though_more_is_due(names, monkeypatch):
    monkeypatch.setattr(module, "TURN", 0.02)
    monkeypatch.setattr(module, "FLOOR", 0.0)
    Duties(Work(names, "always", every=0.0, takes=0.005)).run()
    assert 2 <= len(names) <= 5


def test_signal_that_interrupts_a_duty_ends_the_turn(names):
    duties = Duties(Work(names, "first", error=KeyboardInterrupt()), Work(names, "second"))
    with pytest.raises(KeyboardInterrupt):
        duties.run()
    assert names == ["first"]
    duties.run()
    assert names == ["first", "second"]
