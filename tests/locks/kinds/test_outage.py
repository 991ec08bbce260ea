"""What a caller of a lock sees while the server is away."""

import contextlib
import threading
from time import monotonic

import pytest

from redis_kit.core import connections
from redis_kit.core.errors import RedisUnavailable
from redis_kit.locks import FairLock, Lock, MultiLock, NotHeld, ReadWriteLock, Semaphore
from redis_kit.locks.acquiring import wait
from tests.fixtures.servers import wait_for

pytestmark = pytest.mark.alone(14)

MAKERS = [lambda: Lock("a"), lambda: Semaphore("a", 1)]
KINDS = ["lock", "semaphore"]


@contextlib.contextmanager
def one_reply_lost(proxy):
    """Lose the reply to the next command, and pass on all after it."""
    seen = proxy.replies
    proxy.set("drop_replies")

    def mend():
        wait_for(lambda: proxy.replies > seen)
        proxy.set("ok")

    thread = threading.Thread(target=mend)
    thread.start()
    yield
    thread.join()


@pytest.mark.parametrize("make", MAKERS, ids=KINDS)
def test_caller_whose_reply_was_lost_is_not_locked_out_by_himself(kit, proxy, twin, make):
    kit.connect(proxy.connection, CONNECT_TIMEOUT=2.0, READ_TIMEOUT=0.5)
    twin(twin(make().acquire).release)  # loads the scripts
    with one_reply_lost(proxy), pytest.raises(RedisUnavailable) as caught:
        twin(make().acquire)
    assert caught.value.indeterminate
    assert twin(make().acquire, blocking_timeout=1)


def test_release_that_failed_need_not_be_tried_again(own_kit, twin):
    lock = Lock("a")
    lease = twin(lock.acquire)
    own_kit.server.freeze()
    try:
        with pytest.raises(RedisUnavailable):
            twin(lock.release)
    finally:
        own_kit.server.thaw()
    with pytest.raises(NotHeld):
        twin(lock.release)
    with pytest.raises(NotHeld, match="was released before"):
        twin(lease.release)
    wait_for(lambda: not Lock("a").locked(), timeout=2)


@pytest.mark.parametrize("make", MAKERS, ids=KINDS)
@pytest.mark.parametrize("patience", [0, 0.4])
def test_caller_is_told_in_time_when_the_server_freezes(own_kit, twin, make, patience):
    held = twin(make().acquire)
    own_kit.server.freeze()
    began = monotonic()
    try:
        with pytest.raises(RedisUnavailable) as caught:
            twin(make().acquire, blocking_timeout=patience)
    finally:
        own_kit.server.thaw()
    assert monotonic() - began < 10  # a call without a time limit waits until the test ends it
    assert caught.value.indeterminate
    assert held


@pytest.mark.parametrize("make", MAKERS, ids=KINDS)
def test_caller_is_told_in_time_when_the_server_is_gone(own_kit, twin, make):
    twin(twin(make().acquire).release)
    own_kit.server.stop()
    began = monotonic()
    with pytest.raises(RedisUnavailable) as caught:
        twin(make().acquire, blocking_timeout=60)
    assert monotonic() - began < 30  # and not after 60 s, as if another had the lock
    assert not caught.value.indeterminate


EVERY_KIND = {
    "lock": Lock,
    "fair lock": FairLock,
    "reader": lambda name, **options: ReadWriteLock(name, **options).read,
    "writer": lambda name, **options: ReadWriteLock(name, **options).write,
    "semaphore": lambda name, **options: Semaphore(name, 1, **options),
    "fair semaphore": lambda name, **options: Semaphore(name, 1, fair=True, **options),
    "multi lock": lambda name, **options: MultiLock(f"{name}1", f"{name}2", **options),
}


@pytest.fixture(params=EVERY_KIND)
def pair(request):
    """Two locks of one kind, for two callers that exclude each other."""
    make = EVERY_KIND[request.param]
    other = EVERY_KIND["writer"] if request.param == "reader" else make
    return other("a"), make("a")


class Waiter:
    """A caller that waits in a thread of its own."""

    def __init__(self, twin, lock, seconds=15.0):
        self.result, self._call, self._lock, self._seconds = None, twin, lock, seconds
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self):
        try:
            self.result = self._call(self._lock.acquire, blocking_timeout=self._seconds)
        except Exception as error:
            self.result = error

    def ended(self):
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self.result


def blocked_clients(kit):
    return [client["id"] for client in kit.client.client_list() if "b" in client["flags"]]


def test_waiter_survives_connections_that_are_cut(kit, twin, pair):
    held, waiting = pair
    lease = held.acquire()
    waiter = Waiter(twin, waiting)
    for _ in range(2):
        (id,) = wait_for(lambda: blocked_clients(kit))
        kit.client.client_kill_filter(_id=id)
    wait_for(lambda: blocked_clients(kit) not in ([], [id]))
    lease.release()
    assert waiter.ended()
    assert not connections.client().breaker.failures  # proxies cut silent connections: that is no outage
    twin(waiter.result.release)
    assert held.acquire(blocking_timeout=5)


@pytest.fixture
def failed(own_kit, monkeypatch):
    """A function that waits until a waiter has met the failure of the server."""
    monkeypatch.setattr(wait, "INTERVAL", 0.1)
    return lambda: wait_for(lambda: connections.client().breaker.failures)


FEW_KINDS = pytest.mark.parametrize("pair", ["lock", "fair lock", "multi lock"], indirect=True)


@FEW_KINDS
def test_waiter_survives_a_stall(own_kit, twin, pair, failed):
    held, waiting = pair
    lease = held.acquire()
    waiter = Waiter(twin, waiting)
    wait_for(lambda: blocked_clients(own_kit))
    own_kit.server.freeze()
    failed()
    own_kit.server.thaw()
    with contextlib.suppress(RedisUnavailable):  # then it goes on in the background
        lease.release()
    assert waiter.ended()
    twin(waiter.result.release)
    assert held.acquire(blocking_timeout=5)


def test_wait_during_an_outage_ends_at_its_timeout(own_kit, twin):
    Lock("a").acquire()
    waiter = Waiter(twin, Lock("a"), seconds=0.7)
    wait_for(lambda: blocked_clients(own_kit))
    own_kit.server.stop()
    assert isinstance(waiter.ended(), RedisUnavailable)


def test_caller_that_begins_while_the_breaker_is_open_does_not_wait(own_kit, failed):
    Lock("a").acquire()
    waiter = Waiter(lambda method, **options: method(**options), Lock("a"), seconds=30.0)
    wait_for(lambda: blocked_clients(own_kit))
    own_kit.server.stop()
    breaker = connections.client().breaker
    wait_for(lambda: breaker.is_open)
    with pytest.raises(RedisUnavailable, match="breaker is open"):
        Lock("a").acquire()
    own_kit.server.start()
    assert waiter.ended()


@pytest.mark.parametrize("make", MAKERS, ids=KINDS)
def test_attempt_whose_reply_was_lost_is_undone_when_the_server_is_back(own_kit, twin, make):
    own_kit.server.freeze()
    with pytest.raises(RedisUnavailable):
        twin(make().acquire, blocking=False)
    own_kit.server.thaw()
    assert wait_for(lambda: twin(make().acquire, blocking=False), timeout=5)
