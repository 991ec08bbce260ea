"""Leases that are renewed, and attempts that are taken back, while the server is away."""

from time import monotonic

import pytest

from redis_kit.core import connections
from redis_kit.locks import Lock, LockLost, Semaphore
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import passed

pytestmark = pytest.mark.alone(9)

KINDS = {"lock": lambda **options: Lock("a", **options), "semaphore": lambda **options: Semaphore("a", 1, **options)}


@pytest.fixture(params=KINDS)
def make(request):
    return KINDS[request.param]


@pytest.fixture
def lost():
    """A list of the leases that were lost; its append is an on_lost."""
    return []


def test_lease_survives_an_outage_shorter_than_itself(own_kit, lost):
    lease = Lock("a", timeout=1.5, renew=True, on_lost=lost.append).acquire()
    own_kit.server.freeze()
    try:
        passed(0.9)
    finally:
        own_kit.server.thaw()
    passed(1.5, since=lease.acquired_at)
    assert lease.held
    lease.release()
    assert not lost


def test_lease_is_lost_on_time_while_the_server_is_away(own_kit, make, caplog):
    told = []
    source = make(timeout=1.2, renew=True, on_lost=lambda lease: told.append((monotonic(), lease.held)))
    lease = source.acquire()
    deadline = lease.deadline
    own_kit.server.freeze()
    try:
        wait_for(lambda: told)
    finally:
        own_kit.server.thaw()
    (moment, held) = told[0]
    assert deadline <= moment < deadline + 5  # the server is away until then
    assert not held
    assert "was lost: it ended, and " in caplog.text
    assert "the last attempt failed: Redis can't be reached" in caplog.text
    wait_for(lambda: not connections.client().breaker.is_open)
    # A renewal that was under way may reach the server after that; it keeps nobody out.
    assert make().acquire(blocking_timeout=5)
    assert len(told) == 1


def test_renewal_whose_reply_was_lost_keeps_nobody_out_after_the_loss(kit, proxy, tcp_valkey, lost):
    kit.connect(proxy.connection, READ_TIMEOUT=1.7)
    lock = Lock("a", timeout=2.4, renew=True, on_lost=lost.append)
    lease, key = lock.acquire(), lock.key("lock:a:holder")
    lease.extend()  # loads the script
    with tcp_valkey.client() as server:
        with proxy.fault("drop_replies"):
            wait_for(lambda: lost)
        assert server.pttl(key) > 600  # it was renewed, though nobody here knows
        wait_for(lambda: not server.exists(key), timeout=0.5)
    assert not lease.held


def test_restarted_server_without_data_is_a_loss(own_kit, lost):
    lease = Lock("a", timeout=2, renew=True, on_lost=lost.append).acquire()
    own_kit.server.restart()
    wait_for(lambda: lost)
    assert not lease.held
    with pytest.raises(LockLost):
        lease.release()


def test_hundreds_of_leases_are_lost_on_time_though_each_attempt_times_out(own_kit):
    own_kit.options(READ_TIMEOUT=10.0, CONNECT_TIMEOUT=10.0)
    late = []

    def on_lost(lease):
        late.append(monotonic() - deadlines[lease])

    leases = [Lock(f"a {number}", timeout=1.2, renew=True, on_lost=on_lost).acquire() for number in range(200)]
    own_kit.server.freeze()
    deadlines = {lease: lease.deadline for lease in leases}
    try:
        wait_for(lambda: len(late) == 200)
    finally:
        own_kit.server.thaw()
    assert max(late) < 5  # sooner than an attempt ends


def test_outage_of_one_server_is_no_matter_to_leases_on_another(own_kit, kit, lost):
    both = {"default": kit.server.connection, "other": own_kit.server.connection}
    kit.options(CONNECTIONS=both, READ_TIMEOUT=2.0)
    there = [Lock(f"a {number}", timeout=1.2, renew=True, using="other").acquire() for number in range(10)]
    here = Lock("here", timeout=0.5, renew=True, on_lost=lost.append).acquire()
    own_kit.server.freeze()
    try:
        wait_for(lambda: not any(lease.held for lease in there))
        assert here.held
    finally:
        own_kit.server.thaw()
    here.release()
    assert not lost
