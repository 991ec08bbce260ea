"""What a caller of a lock sees while the server is away."""

import contextlib
import threading
from time import monotonic

import pytest

from redis_kit.core.errors import RedisUnavailable
from redis_kit.locks import Lock, NotHeld, Semaphore
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


@pytest.mark.parametrize("make", MAKERS, ids=KINDS)
def test_waiter_notices_within_seconds_that_the_server_froze(own_kit, twin, make):
    twin(make().acquire)
    errors = []

    def wait():
        with pytest.raises(RedisUnavailable) as caught:
            twin(make().acquire, blocking_timeout=60)
        errors.append(caught.value)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_for(lambda: own_kit.client.info("clients")["blocked_clients"])
    own_kit.server.freeze()
    try:
        thread.join(10)
    finally:
        own_kit.server.thaw()
    assert len(errors) == 1


@pytest.mark.parametrize("make", MAKERS, ids=KINDS)
def test_attempt_whose_reply_was_lost_is_undone_when_the_server_is_back(own_kit, twin, make):
    own_kit.server.freeze()
    with pytest.raises(RedisUnavailable):
        twin(make().acquire, blocking=False)
    own_kit.server.thaw()
    assert wait_for(lambda: twin(make().acquire, blocking=False), timeout=5)
