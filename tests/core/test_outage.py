"""A server that freezes, stops and comes back: nothing twice, no slow answers, and everything goes on."""

import asyncio
import contextlib
import statistics
import sys
import threading
import time

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from redis_kit.core.client.breaker import Breaker
from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.signals import redis_recovered, redis_unavailable
from redis_kit.locks import Lock, locked
from redis_kit.queues import Queue
from redis_kit.throttling import Throttle, throttle
from tests.fixtures.servers import wait_for

pytestmark = pytest.mark.alone(5)


class Load:
    """Threads that repeat an operation, and what came of each."""

    def __init__(self, operations):
        self.over = threading.Event()
        self.outcomes = [[] for _ in operations]
        pairs = zip(operations, self.outcomes, strict=True)
        self.threads = [threading.Thread(target=self._repeat, args=pair) for pair in pairs]

    def _repeat(self, operation, outcomes):
        number = 0
        while not self.over.is_set():
            number += 1
            try:
                outcomes.append((number, operation(number)))
            except RedisUnavailable as error:
                outcomes.append((number, error))
                time.sleep(0.01)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *raised):
        self.over.set()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def recovered():
    """Return a list of the connections that recovered."""
    connections = []

    def note(using, **kwargs):
        connections.append(using)

    redis_recovered.connect(note)
    yield connections
    redis_recovered.disconnect(note)


def test_frozen_under_load_executes_nothing_twice(own_kit):
    queues = [Queue(f"q{number}") for number in range(3)]
    plain = Throttle("plain", rates="1000000/h", on_failure="closed")

    def enqueuing(queue):
        return lambda number: queue.put({"number": number})

    def counting(number):
        return plain.hit(f"visitor-{number}").allowed

    def locking(number):
        lock = Lock(f"lock-{number}", timeout=1)
        return lock.acquire(blocking=False)

    with Load([*map(enqueuing, queues), counting, locking]) as load:
        time.sleep(0.3)
        own_kit.server.freeze()
        time.sleep(0.8)
        own_kit.server.thaw()
        wait_for(lambda: all(not isinstance(one[-1][1], RedisUnavailable) for one in load.outcomes))
        time.sleep(0.2)
    for queue, outcomes in zip(queues, load.outcomes, strict=False):
        stored = [job.payload["number"] for jobs in iter(lambda queue=queue: queue.claim(1000), []) for job in jobs]
        assert len(stored) == len(set(stored))
        assert {number for number, outcome in outcomes if isinstance(outcome, str)} <= set(stored)
        assert set(stored) <= {number for number, _ in outcomes}
        failed = [outcome for _, outcome in outcomes if isinstance(outcome, RedisUnavailable)]
        assert any(error.indeterminate for error in failed)
    # An acquire whose reply was lost may hold its lock, but for no longer than the lease.
    uncertain = [number for number, outcome in load.outcomes[-1] if isinstance(outcome, RedisUnavailable)]
    assert uncertain
    for number in uncertain:
        wait_for(lambda number=number: Lock(f"lock-{number}").acquire(blocking=False), timeout=3)


def guarded():
    @throttle("1000/m", key="ip")
    @locked("report", on_busy="skip")
    def view(request):
        return HttpResponse("fresh")

    @throttle("1000/m", key="ip")
    def open_view(request):
        return HttpResponse("fresh")

    return view, open_view


def answered(view):
    began = time.perf_counter()
    try:
        response = view(RequestFactory().get("/"))
    except RedisUnavailable as error:
        return time.perf_counter() - began, error
    return time.perf_counter() - began, response


@pytest.mark.parametrize("trouble", ["stop", "freeze"])
def test_guarded_view_answers_fast_and_recovers(own_kit, trouble):
    opened, recovered = threading.Event(), threading.Event()
    redis_unavailable.connect(lambda **kwargs: opened.set(), weak=False, dispatch_uid="opened")
    redis_recovered.connect(lambda **kwargs: recovered.set(), weak=False, dispatch_uid="recovered")
    _, view = guarded()
    assert answered(view)[1].status_code == 200
    getattr(own_kit.server, trouble)()
    first = [answered(view) for _ in range(3)]
    assert all(response.status_code == 200 for _, response in first)
    # Without a time limit a frozen server is waited for until the test is killed.
    assert max(seconds for seconds, _ in first) < 10
    assert opened.wait(10)
    later = [answered(view) for _ in range(50)]
    assert all(response.status_code == 200 for _, response in later)
    assert statistics.median(seconds for seconds, _ in later) < 0.2  # a call that waits for the server takes 0.25 s
    own_kit.server.start() if trouble == "stop" else own_kit.server.thaw()
    assert recovered.wait(20)
    assert Lock("after").acquire(blocking=False)
    redis_unavailable.disconnect(dispatch_uid="opened")
    redis_recovered.disconnect(dispatch_uid="recovered")


def test_breaker_opens_at_the_third_failure_in_a_second_and_not_before():
    breaker = Breaker("x", probe=lambda: 1 / 0)
    breaker.failed(RedisUnavailable("1"))
    breaker.failed(RedisUnavailable("2"))
    assert not breaker.is_open
    breaker.succeeded()
    breaker.failed(RedisUnavailable("3"))
    assert not breaker.is_open
    breaker.failed(RedisUnavailable("4"))
    breaker.failed(RedisUnavailable("5"))
    assert breaker.is_open
    with pytest.raises(RedisUnavailable) as caught:
        breaker.refuse()
    assert not caught.value.indeterminate
    assert (caught.value.using, caught.value.reason) == ("x", "5")
    assert str(caught.value).endswith(" each second. 5")
    breaker.retire()


class Probe:
    """What a breaker asks the server with."""

    def __init__(self, answers=True):
        self.answers = answers
        self.callers = []

    def __call__(self):
        self.callers.append(threading.current_thread())
        if not self.answers:
            raise OSError("no answer")


@pytest.fixture
def opened(monkeypatch):
    """A function that opens a breaker while no thread can be started."""
    monkeypatch.setattr("redis_kit.core.client.breaker.PROBE", 0.05)

    def open_breaker(probe):
        found = Breaker("x", probe)
        with no_more_threads():
            for number in range(3):
                found.failed(RedisUnavailable(str(number)))
        assert found.is_open
        return found

    return open_breaker


@contextlib.contextmanager
def no_more_threads():
    """Let no thread start. A real failure would leave a state behind, and Python 3.11 raises no timeout then."""

    def start(thread):
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        yield


def refused(breaker):
    try:
        breaker.refuse()
    except RedisUnavailable:
        return True
    return False


def test_breaker_whose_thread_could_not_start_closes_again(opened):
    probe = Probe()
    breaker = opened(probe)
    wait_for(lambda: refused(breaker) and not breaker.is_open)
    assert threading.current_thread() not in probe.callers


def test_breaker_closes_even_if_no_thread_can_ever_be_started(opened):
    probe = Probe(answers=False)
    breaker = opened(probe)
    with no_more_threads():
        wait_for(lambda: refused(breaker) and len(probe.callers) >= 2)
        probe.answers = True
        wait_for(lambda: not refused(breaker))  # the caller that asked goes on
    assert not breaker.is_open
    assert set(probe.callers) == {threading.current_thread()}


def test_without_a_thread_one_caller_a_second_asks(opened, monkeypatch):
    probe = Probe(answers=False)
    breaker = opened(probe)
    monkeypatch.setattr("redis_kit.core.client.breaker.PROBE", 60.0)
    with no_more_threads():
        wait_for(lambda: refused(breaker) and probe.callers)
        assert all(refused(breaker) for _ in range(20))
    assert len(probe.callers) == 1


def test_throttle_answers_by_its_policy_without_a_breakers_thread(own_kit):
    throttle = Throttle("plain", rates="5/m", on_failure="closed")
    assert throttle.hit("x").allowed
    own_kit.server.stop()
    with no_more_threads():
        assert not any(throttle.hit("x").allowed for _ in range(4))
    own_kit.server.start()
    wait_for(lambda: throttle.hit("x").allowed)


def test_breaker_that_an_interruption_left_without_a_thread_closes(opened, monkeypatch):
    breaker = Breaker("x", Probe())
    monkeypatch.setattr("redis_kit.core.client.breaker.send_safely", lambda *_, **__: sys.exit())
    monkeypatch.setattr(threading.Thread, "start", lambda _: sys.exit())
    breaker.failed(RedisUnavailable("1"))
    breaker.failed(RedisUnavailable("2"))
    with pytest.raises(SystemExit):
        breaker.failed(RedisUnavailable("3"))
    assert breaker.is_open
    monkeypatch.undo()
    wait_for(lambda: refused(breaker) and not breaker.is_open)


def test_open_breaker_serves_async_callers_too(own_kit):
    own_kit.server.stop()
    lock = Lock("a")

    async def main():
        for _ in range(4):
            with pytest.raises(RedisUnavailable):
                await lock.aacquire(blocking=False)
        began = time.perf_counter()
        with pytest.raises(RedisUnavailable, match="breaker is open"):
            await lock.aacquire(blocking=False)
        return time.perf_counter() - began

    assert asyncio.run(main()) < 0.05


@pytest.mark.parametrize(
    ("trouble", "mended", "reason"),
    [
        (
            ("CONFIG", "SET", "min-replicas-to-write", "1"),
            ("CONFIG", "SET", "min-replicas-to-write", "0"),
            "NOREPLICAS",
        ),
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "read only"),
    ],
)
def test_server_that_answers_but_takes_no_writes_has_one_outage(own_kit, recovered, trouble, mended, reason):
    queue = Queue("q")
    queue.put("x")
    own_kit.server.client().execute_command(*trouble)
    reasons, end = set(), time.monotonic() + 3.5
    while time.monotonic() < end:
        with pytest.raises(RedisUnavailable) as raised:
            queue.put("x")
        reasons.add(reason in raised.value.reason)
        time.sleep(0.02)
    assert (reasons, recovered) == ({True}, [])
    own_kit.server.client().execute_command(*mended)
    wait_for(lambda: recovered)
    queue.put("x")
    assert queue.counts().ready == 2
