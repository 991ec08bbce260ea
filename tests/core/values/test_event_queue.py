"""A queue for one reader, which signals may interrupt."""

import signal
import threading
import time
from queue import Empty

import pytest

from redis_kit.core.values.event_queue import EventQueue


def test_items_come_in_their_order_and_wake_the_reader():
    queue = EventQueue()
    queue.put(1)
    queue.put(2)
    assert (queue.empty(), queue.get(), queue.get(timeout=0), queue.empty()) == (False, 1, 2, True)
    with pytest.raises(Empty):
        queue.get(timeout=0.01)
    threading.Timer(0.05, queue.put, [3]).start()
    assert queue.get() == 3


def test_handler_that_outlasts_the_wait_does_not_make_it_endless():
    queue, rescue = EventQueue(), threading.Timer(5, lambda: queue.put("too late"))
    before = signal.signal(signal.SIGALRM, lambda *args: time.sleep(0.2))
    rescue.start()
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(Empty):
            queue.get(timeout=0.1)
    finally:
        rescue.cancel()
        signal.signal(signal.SIGALRM, before)


def test_handler_may_put_while_the_reader_waits():
    queue = EventQueue()
    before = signal.signal(signal.SIGALRM, lambda *args: queue.put("signal"))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        assert queue.get(timeout=5) == "signal"
    finally:
        signal.signal(signal.SIGALRM, before)
