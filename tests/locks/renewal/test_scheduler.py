"""The threads that do things again and again."""

import contextlib
import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from time import monotonic

import pytest

from redis_kit.locks.errors import CannotRenew
from redis_kit.locks.renewal import scheduler
from tests.fixtures.servers import wait_for

pytestmark = pytest.mark.alone(4)

ROOT = Path(__file__).parents[3]


class Beater:
    """Beats as often as told, and does what it is told at each beat."""

    def __init__(self, *answers, doing=None):
        self.answers, self.doing = list(answers), doing
        self.times, self.threads = [], []

    def __call__(self):
        self.times.append(monotonic())
        self.threads.append(threading.current_thread())
        if self.doing:
            self.doing()
        return self.answers.pop(0) if self.answers else None


@pytest.fixture
def loop():
    """A loop of this test's own."""
    lane, anchor = f"test {os.urandom(4).hex()}", Beater()
    scheduler.add(anchor, after=3600, lane=lane)
    found = scheduler._loops[lane]
    yield found
    end(found)


def end(loop):
    """Let the thread of a loop end."""
    scheduler._loops.pop(loop.lane)
    thread, loop._thread = loop._thread, None
    loop._wake_ups.put(None)
    wait_for(lambda: not thread.is_alive())


def test_item_beats_as_often_as_it_says(loop):
    item = Beater(0.05, 0.02)
    began = monotonic()
    loop.add(item, 0.1)
    wait_for(lambda: len(item.times) == 3)
    first, second, third = (moment - began for moment in item.times)
    assert first >= 0.1
    assert second - first >= 0.05
    assert third - second >= 0.02
    assert third < 0.17 + 1.0


def test_item_that_is_due_earlier_wakes_the_thread(loop):
    late, early = Beater(), Beater()
    loop.add(late, 60)
    loop.add(early, 0.02)
    wait_for(lambda: early.times)
    assert not late.times


def test_removed_item_beats_no_more(loop):
    removed, kept = Beater(0, 0, 0), Beater()
    loop.add(removed, 0.05)
    loop.add(kept, 0.1)
    loop.remove(removed)
    wait_for(lambda: kept.times)
    assert not removed.times


def test_item_removed_during_its_beat_is_not_put_back(loop):
    item = Beater(0, 0, 0)
    item.doing = lambda: loop.remove(item)
    later = Beater()
    loop.add(item, 0)
    loop.add(later, 0.05)
    wait_for(lambda: later.times)
    assert len(item.times) == 1


def test_item_added_again_starts_anew(loop):
    item, later = Beater(None), Beater()
    loop.add(item, 60)
    loop.add(item, 0.01)
    loop.add(later, 0.05)
    wait_for(lambda: later.times)
    assert len(item.times) == 1


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_failed_beat_is_tried_again_and_others_go_on(loop, caplog, error):
    def fail():
        if len(bad.times) < 3:
            raise error("broken")

    bad, good = Beater(doing=fail), Beater(0.01, 0.01)
    loop.add(bad, 0)
    loop.add(good, 0)
    wait_for(lambda: len(bad.times) == 3 and len(good.times) == 3)
    assert {*bad.threads, *good.threads} == {loop._thread}
    assert caplog.text.count("broken") >= 2


def test_thread_goes_on_after_exceptions_raised_in_it_at_any_place(loop):
    items = [Beater(*[0.001] * 10_000) for _ in range(5)]
    for item in items:
        loop.add(item, 0)
    raised = 0
    for _ in range(100):
        seen = len(items[0].times)
        raised += ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(loop._thread.ident), ctypes.py_object(SystemExit)
        )
        wait_for(lambda seen=seen: len(items[0].times) > seen)
    assert raised >= 90
    counts = [len(item.times) for item in items]
    wait_for(lambda: all(len(item.times) > count for item, count in zip(items, counts, strict=True)))
    for item in items:
        loop.remove(item)


def test_thread_that_is_gone_is_started_by_the_next_item(loop):
    waiting = Beater()
    loop.add(waiting, 0.2)
    with replaced(loop) as (first, gone):
        item = Beater()
        loop.add(item, 0)
        wait_for(lambda: item.times and waiting.times)
        assert loop._thread not in (first, gone)


@pytest.mark.parametrize("ended", [False, True])
def test_replaced_thread_takes_no_wake_up_from_the_next_one(loop, ended):
    with replaced(loop) as (first, _):
        wake_ups = loop._wake_ups
        loop.revive()
        wait_for(lambda: loop._wake_ups is not wake_ups and asleep(loop))
        if ended:
            wake_ups.put(None)
            first.join(10)
        item = Beater()
        loop.add(item, 0)
        wait_for(lambda: item.times)


@contextlib.contextmanager
def replaced(loop):
    """The thread of a loop, which sleeps while another one that has ended stands in its place, and that one."""
    wait_for(lambda: asleep(loop))
    first, wake_ups = loop._thread, loop._wake_ups
    loop._thread = gone = threading.Thread(target=int)
    gone.start()
    gone.join()
    yield first, gone
    wake_ups.put(None)
    first.join(10)
    assert not first.is_alive()


def asleep(loop):
    return loop._wake_ups.sleeps_until > monotonic()


def test_beats_of_one_lane_do_not_make_those_of_another_late(loop):
    release = threading.Event()
    slow, fast = Beater(doing=release.wait), Beater(0.01, 0.01, 0.01)
    loop.add(slow, 0)
    wait_for(lambda: slow.times)
    scheduler.add(fast, lane=scheduler.CLOCK)
    try:
        wait_for(lambda: len(fast.times) == 4)
    finally:
        release.set()


def test_item_is_not_kept_where_the_thread_does_not_start(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    lane, item = f"test {os.urandom(4).hex()}", Beater()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(CannotRenew, match="can't start new thread"):
            scheduler.add(item, lane=lane)
    other = Beater()
    scheduler.add(other, after=0.01, lane=lane)
    wait_for(lambda: other.times)
    assert not item.times
    end(scheduler._loops[lane])


def test_items_that_come_and_go_before_they_are_due_leave_nothing_behind(loop):
    for number in range(20_000):
        item = Beater()
        loop.add(item, 3600)
        loop.remove(item)
        if number % 1000 == 0:
            wait_for(lambda: len(loop._new) <= scheduler.MAX_STALE + 1)
    assert len(loop._entries) == 1
    assert len(loop._heap) <= scheduler.MAX_STALE + 3


def test_items_removed_late_are_dropped(loop):
    items = [Beater() for _ in range(5_000)]
    for item in items:
        loop.add(item, 3600)
    wait_for(lambda: loop.add(items[-1], 0) or len(loop._heap) >= 4_000)
    for item in items:
        loop.remove(item)
    loop.add(items[0], 0)
    wait_for(lambda: len(loop._heap) <= scheduler.MAX_STALE + 3)


FORK = """
import os, threading, time
from redis_kit.locks.renewal import scheduler as renewals

class Item:
    beats = 0
    def __call__(self):
        self.beats += 1
        return 0.001

old = Item()
renewals.add(old)
while not old.beats:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    before, new = old.beats, Item()
    alone = threading.active_count() == 1
    renewals.add(new)
    end = time.monotonic() + 5
    while new.beats < 10 and time.monotonic() < end:
        time.sleep(0.001)
    os._exit(0 if alone and new.beats >= 10 and old.beats == before else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

EXIT = """
import threading, time
from redis_kit.locks.renewal import scheduler as renewals

class Item:
    def __call__(self):
        started.set()
        time.sleep(60)

started = threading.Event()
for lane in ("a", "b"):
    renewals.add(Item(), lane=lane)
renewals.add(Item(), after=3600, lane="c")
started.wait()
print("end", time.monotonic())
"""


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )


def test_forked_child_forgets_everything_and_has_a_thread_of_its_own():
    done = run(FORK)
    assert (done.returncode, done.stdout.strip()) == (0, "0")


def test_interpreter_ends_at_once_while_a_beat_lasts():
    done = run(EXIT)
    ended = time.monotonic()
    assert (done.returncode, done.stderr) == (0, "")
    assert ended - float(done.stdout.split()[1]) < 15  # a beat lasts 60 s
