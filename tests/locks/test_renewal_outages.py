"""Leases that are renewed, and attempts that are taken back, while the server is away."""

from time import monotonic

import pytest

from redis_kit.locks import Lock, LockLost, Semaphore, renewal, renewals
from redis_kit.locks.waiting import Attempt
from tests.fixtures.servers import wait_for
from tests.locks.leases import passed

pytestmark = pytest.mark.alone

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
    passed(1.5, since=lease.taken_at)
    assert lease.held
    lease.release()
    assert not lost


def test_lease_is_lost_on_time_while_the_server_is_away(own_kit, make, caplog):
    told = []
    source = make(timeout=0.6, renew=True, on_lost=lambda lease: told.append((monotonic(), lease.held)))
    lease = source.acquire()
    deadline = lease.deadline
    own_kit.server.freeze()
    try:
        wait_for(lambda: told)
    finally:
        own_kit.server.thaw()
    (moment, held) = told[0]
    assert deadline <= moment < deadline + 0.5
    assert not held
    assert "was lost: it lasts 0.6 s" in caplog.text
    assert "the last try failed: Redis can't be reached" in caplog.text
    # A renewal that was under way may reach the server after that; it keeps nobody out.
    assert make().acquire(blocking_timeout=2)
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


def test_hundreds_of_leases_are_lost_on_time_although_each_try_waits_for_its_time_limit(own_kit):
    own_kit.options(READ_TIMEOUT=2.0, CONNECT_TIMEOUT=2.0)
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
    assert max(late) < 0.5


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


def test_undo_gives_back_what_was_taken(kit, make):
    source = make(timeout=30)
    lease = source.acquire()
    renewal.undo(source, lease.token, 30)
    wait_for(lambda: make().acquire(blocking=False))


def test_undo_goes_on_until_the_server_answers(own_kit):
    source = Lock("a", timeout=30)
    lease = source.acquire()
    own_kit.server.freeze()
    began = monotonic()
    renewal.undo(source, lease.token, 30)
    assert monotonic() - began < 0.1
    try:
        passed(0.4)
    finally:
        own_kit.server.thaw()
    wait_for(lambda: Lock("a").acquire(blocking=False))


def test_undo_finds_an_attempt_that_reaches_the_server_after_it(kit, make, monkeypatch):
    monkeypatch.setattr(renewal, "ON_ITS_WAY", 0.2)
    source, late = make(), Attempt(30, patience=0)
    renewal.undo(source, late.token, 30)
    wait_for(lambda: any(entry.item.looked for entry in undos(late.token)))
    assert source._run(renewal._only(late.ask(source)))
    assert not make().acquire(blocking=False)
    wait_for(lambda: make().acquire(blocking=False))


def undos(token):
    entries = list(renewals._loops["default"]._entries.values())
    return [entry for entry in entries if getattr(entry.item, "token", None) == token]


def test_undo_gives_up_when_the_lease_has_ended_by_itself(own_kit):
    source = Lock("a", timeout=0.3)
    own_kit.server.freeze()
    renewal.undo(source, "f" * 32, 0.3)
    try:
        wait_for(lambda: not undos("f" * 32))
    finally:
        own_kit.server.thaw()
