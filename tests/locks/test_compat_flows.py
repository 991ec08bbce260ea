"""Where redis-py's locks are unsafe and ours are not."""

import contextlib
import threading
from itertools import combinations
from time import monotonic

import pytest
import redis
import redis.lock
from hypothesis import example, given
from hypothesis import strategies as st
from redis.backoff import ConstantBackoff, NoBackoff
from redis.crc import key_slot
from redis.exceptions import LockError, LockNotOwnedError, OutOfMemoryError, ResponseError
from redis.retry import Retry

from redis_kit.core.errors import InvalidValue
from redis_kit.locks import compat as compat_flows
from redis_kit.locks.compat import Lock, fence_key
from redis_kit.locks.errors import CannotRenew
from redis_kit.locks.renewal import scheduler
from tests.fixtures.servers import wait_for
from tests.locks.support.redispy import OURS, Bench

pytestmark = pytest.mark.once

HOLD = """
import signal
import redis
from redis_kit.locks import compat as compat_flows
from redis_kit.locks.compat import Lock
compat_flows.DEFAULT_TIMEOUT = 1.0
lock = Lock(redis.Redis.from_url(sys.argv[2]), sys.argv[1] + ":a")
lock.acquire()
print("held", flush=True)
signal.pause()
"""
FORK = """
import redis
from redis_kit.locks import compat as compat_flows
from redis_kit.locks.compat import Lock
compat_flows.DEFAULT_TIMEOUT = 0.3
client = redis.Redis.from_url(sys.argv[2])
lock = Lock(client, sys.argv[1] + ":a")
lock.acquire()
child = os.fork()
if child == 0:
    lock.release()
    os._exit(0)
os.waitpid(child, 0)
time.sleep(0.3)
print(client.exists(lock.name))
"""


@pytest.fixture(params=["sync", "async"])
def bench(any_kit, request):
    with contextlib.closing(Bench(any_kit, request.param, OURS[request.param])) as found:
        yield found


@pytest.fixture
def client(kit):
    with redis.Redis.from_url(kit.url) as found:
        yield found


@pytest.fixture
def key(kit, client):
    name = f"{kit.prefix}:a"
    yield name
    client.delete(name, fence_key(name.encode()))


@pytest.fixture
def short_lease(monkeypatch):
    monkeypatch.setattr(compat_flows, "DEFAULT_TIMEOUT", 0.6)


@pytest.mark.parametrize("timeout", [None, 0, 0.0])
def test_lock_without_a_timeout_has_a_lease(bench, timeout):
    lock = bench.lock(timeout=timeout)
    assert bench.run(lock.acquire())
    assert 25_000 < bench.look.pttl(bench.key()) <= 30_000
    for call in (lambda: lock.extend(10), lambda: lock.extend(10, replace_ttl=True), lock.reacquire):
        with pytest.raises(LockError, match="with no timeout"):
            bench.run(call())
    assert bench.run(lock.owned())
    bench.run(lock.release())


def test_lease_is_renewed_until_release(key, client, short_lease, caplog):
    lock, fence = Lock(client, key), fence_key(key.encode())
    assert lock.acquire()
    client.pexpire(fence, 60_000)
    until = monotonic() + 1.5
    wait_for(lambda: not lock.owned() or monotonic() > until)
    assert lock.owned()
    assert 0 < client.pttl(key) <= 600
    assert 3_600_000 < client.pttl(fence) <= 3_600_600
    lock.release()
    assert not client.exists(key)
    until = monotonic() + 0.3
    wait_for(lambda: monotonic() > until)
    assert "its renewal stops" not in caplog.text  # as a beat would say that finds nothing


def test_lease_is_renewed_on_each_kind_of_server(bench, short_lease):
    lock = bench.lock()
    bench.run(lock.acquire())
    bench.look.pexpire(bench.key(), 60_000)
    bench.wait_for(lambda: 0 < bench.look.pttl(bench.key()) <= 600)
    bench.run(lock.release())
    assert not bench.look.exists(bench.key())


def test_lease_is_renewed_although_the_lock_object_is_gone(key, client, short_lease):
    lock = Lock(client, key)
    lock.acquire()
    token = lock.local.token
    del lock
    until = monotonic() + 1.5
    wait_for(lambda: not client.exists(key) or monotonic() > until)
    assert client.get(key) == token
    other = Lock(client, key)
    other.do_release(token)


def test_renewal_stops_when_the_lock_is_lost(key, client, short_lease, caplog):
    lock = Lock(client, key)
    lock.acquire()
    client.set(key, "other", px=60_000)
    wait_for(lambda: "its renewal stops" in caplog.text)
    assert client.get(key) == b"other"
    assert client.pttl(key) > 50_000
    with pytest.raises(LockNotOwnedError):
        lock.release()


def test_lock_that_can_not_be_renewed_is_not_taken(key, client, monkeypatch):
    def add(*args, **options):
        raise CannotRenew("no more threads")

    monkeypatch.setattr(scheduler, "add", add)
    lock = Lock(client, key)
    with pytest.raises(CannotRenew):
        lock.acquire()
    assert lock.local.token is None
    assert not client.exists(key)
    assert Lock(client, key, timeout=5).acquire(blocking=False)


def test_lock_of_a_killed_holder_is_free_after_its_lease(kit, key, client, program):
    holder = program(HOLD)
    assert holder.stdout.readline() == "held\n"
    until = monotonic() + 1.6
    wait_for(lambda: not client.exists(key) or monotonic() > until)
    assert client.exists(key)
    holder.kill()
    began = monotonic()
    assert Lock(client, key, timeout=5).acquire(blocking_timeout=5)
    assert monotonic() - began < 4  # and not after the 5 s of the call


def test_forked_child_may_release_what_its_parent_took(kit, key, program):
    output, _ = program(FORK).communicate(timeout=30)
    assert output.split() == ["0"]


@pytest.mark.parametrize("timeout", [-1, 0.0001])
def test_timeout_that_is_no_time_is_refused_before_anything_is_sent(key, client, timeout):
    with pytest.raises(InvalidValue, match="timeout must be at least"):
        Lock(client, key, timeout=timeout).acquire()
    lock = Lock(client, key, timeout=5)
    lock.acquire()
    lock.timeout = timeout
    with pytest.raises(InvalidValue):
        lock.reacquire()
    assert client.exists(key)


def test_extend_never_ends_the_lock(bench):
    lock = bench.lock(timeout=10)
    bench.run(lock.acquire())
    for call in (lambda: lock.extend(-20), lambda: lock.extend(0, replace_ttl=True)):
        with pytest.raises(LockError, match="so that it ends at once"):
            bench.run(call())
    assert bench.look.pttl(bench.key()) > 8000


def test_lock_that_never_ends_is_not_given_an_end(bench):
    bench.look.set(bench.key(), "t")
    lock = bench.lock(timeout=10)
    lock.local.token = b"t"
    with pytest.raises(LockNotOwnedError):
        bench.run(lock.extend(10))
    assert bench.look.pttl(bench.key()) == -1


def test_fence_grows_with_every_holder(bench):
    fences = []
    for turn in range(6):
        lock = bench.lock(timeout=10)
        assert lock.fence is None
        bench.run(lock.acquire())
        fences.append(lock.fence)
        bench.run(lock.release())
        assert lock.fence is None
        if turn == 2:
            bench.look.delete(fence_key(bench.key().encode()))  # as after a loss of all data
        if turn == 3:
            bench.look.set(fence_key(bench.key().encode()), f"{2**52} c ")  # as after a clock set back
    assert fences == sorted(set(fences))
    assert fences[-1] == 2**52 + 2


def test_fence_is_of_the_own_token_only(bench):
    lock = bench.lock(timeout=10, thread_local=False)
    bench.run(lock.acquire())
    assert lock.fence
    lock.local.token = b"from elsewhere"
    assert lock.fence is None


def test_fence_outlives_the_lease(bench):
    lock, fence = bench.lock(timeout=10), fence_key(bench.key().encode())
    bench.run(lock.acquire())
    for call in (lambda: lock.extend(10_000), lambda: lock.extend(20_000, replace_ttl=True), lock.reacquire):
        bench.run(call())
        assert bench.look.pttl(bench.key()) + 3_590_000 < bench.look.pttl(fence)


def test_nothing_is_left_but_a_fence_that_ends(bench):
    with bench.inside(bench.lock(timeout=10)):
        pass
    (left,) = bench.keys()
    assert left == fence_key(bench.key().encode()).decode()
    assert 0 < bench.look.pttl(left) <= 3_600_000


def test_another_thread_holds_nothing(key, client):
    lock, failures = Lock(client, key, timeout=10), []

    def work():
        for call in (lock.release, lambda: lock.extend(1), lock.reacquire):
            with pytest.raises(LockError) as caught:
                call()
            failures.append(str(caught.value))
        assert lock.owned() is False

    lock.acquire()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(failures) == 3
    lock.release()


def test_key_of_another_type_is_an_error_and_stays(bench):
    bench.look.hset(bench.key(), "field", "value")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        bench.run(bench.lock(timeout=10).acquire(blocking=False))
    assert bench.keys() == [bench.key()]


def test_server_that_forgot_the_scripts_is_told_again(bench):
    lock = bench.lock(timeout=10)
    for call in (lock.acquire, lambda: lock.extend(1), lock.reacquire, lock.release):
        bench.look.script_flush()
        bench.run(call())


def test_full_server_lets_locks_be_kept_and_released(own_server):
    with own_server.client() as client:
        lock, free = Lock(client, "a", timeout=10), Lock(client, "b", timeout=10)
        assert lock.acquire()
        client.config_set("maxmemory", 1)
        with pytest.raises(OutOfMemoryError):
            free.acquire()
        assert lock.extend(5)
        assert lock.reacquire()
        lock.release()
        assert client.exists("a") == 0


@pytest.fixture(params=[True, False], ids=["repeats", "gives-up"])
def repeats(request):
    return request.param


@pytest.fixture
def through(kit, proxy, repeats):
    """A function that makes locks on a client behind the proxy, which repeats commands or does not."""
    retry = Retry(ConstantBackoff(0.05), 100) if repeats else Retry(NoBackoff(), 0)
    with redis.Redis.from_url(proxy.url, socket_timeout=0.2, retry=retry) as client:
        client.ping()
        with Lock(client, f"{kit.prefix}:first", timeout=60) as lock:
            lock.extend(1)  # so that the server has the scripts
        yield lambda kind: client.lock(f"{kit.prefix}:a", lock_class=kind, timeout=60, thread_local=False)


@pytest.fixture
def look(tcp_valkey, kit):
    with tcp_valkey.client(decode_responses=False) as found:
        yield found
        for key in found.scan_iter(f"*{kit.prefix}:*"):
            found.delete(key)


def _with_lost_replies(proxy, call, happened):
    """Make a call whose first reply gets lost, and so do some more, after the server has done what it was told."""
    outcome = []

    def work():
        try:
            outcome.append(call())
        except redis.RedisError as error:
            outcome.append(error)

    with proxy.fault("drop_replies"):
        thread = threading.Thread(target=work)
        thread.start()
        wait_for(happened)
        sent = proxy.requests
        wait_for(lambda: proxy.requests > sent or outcome)
    thread.join(20)
    return outcome[0]


def test_lost_reply_to_acquire_locks_nobody_out(proxy, through, repeats, look):
    lock = through(Lock)
    outcome = _with_lost_replies(proxy, lambda: lock.acquire(blocking=False), lambda: look.exists(lock.name))
    if repeats:
        assert outcome is True
        assert look.get(lock.name) == lock.local.token
    else:
        assert isinstance(outcome, redis.exceptions.TimeoutError)
        assert lock.local.token is None
        wait_for(lambda: not look.exists(lock.name))  # long before its 60 s are over


@pytest.mark.parametrize("repeats", [True])
def test_stock_lock_locks_itself_out_by_the_same(proxy, through, look):
    lock = through(redis.lock.Lock)
    outcome = _with_lost_replies(proxy, lambda: lock.acquire(blocking=False), lambda: look.exists(lock.name))
    assert outcome is False


def test_lost_reply_to_release_is_no_loss_of_the_lock(proxy, through, repeats, look):
    lock = through(Lock)
    lock.acquire()
    token = lock.local.token
    outcome = _with_lost_replies(proxy, lock.release, lambda: not look.exists(lock.name))
    if repeats:
        assert outcome is None
        assert lock.local.token is None
    else:
        assert isinstance(outcome, redis.exceptions.TimeoutError)
        assert lock.local.token is None
        assert lock.local.released == token  # so that releasing can be tried again
        lock.release()
    with pytest.raises(LockError, match="not owned or is already unlocked"):
        lock.release()


@pytest.mark.parametrize("repeats", [False])
@pytest.mark.parametrize("timeout", [60, None])
def test_release_that_never_arrived_is_over_and_carried_out_later(proxy, through, look, timeout):
    lock = through(Lock)
    lock.timeout = timeout
    lock.acquire()
    with proxy.fault("blackhole"), pytest.raises(redis.exceptions.TimeoutError):
        lock.release()
    assert lock.fence is None
    for change in (lambda: lock.extend(60), lock.reacquire):
        with pytest.raises(LockError):
            change()
    assert not lock.owned()
    wait_for(lambda: not look.exists(lock.name))


@pytest.mark.parametrize("repeats", [False])
def test_late_release_leaves_a_later_lease_of_the_same_token(proxy, through, look):
    lock = through(Lock)
    lock.acquire(token="t")
    fence = lock.fence
    with proxy.fault("blackhole"), pytest.raises(redis.exceptions.TimeoutError):
        lock.release()
    wait_for(lambda: not look.exists(lock.name))
    lock.acquire(token="t")
    assert lock._release_step(b"t", fence=str(fence)).run(lock.redis) == 0
    assert lock.owned()
    lock.release()


@pytest.mark.parametrize("repeats", [True])
def test_repeated_extend_adds_once(proxy, through, look):
    lock = through(Lock)
    lock.acquire()
    outcome = _with_lost_replies(proxy, lambda: lock.extend(60), lambda: look.pttl(lock.name) > 60_000)
    assert outcome is True
    assert look.pttl(lock.name) <= 120_000


def test_attempt_that_is_undone_leaves_another_holder_of_the_same_token(key, client):
    holder, late = Lock(client, key, timeout=60), Lock(client, key, timeout=60)
    holder.acquire(token="t")
    assert late._release_step(b"t", acquired_by="a call that took nothing").run(client) == 0
    assert holder.owned()
    holder.release()


NAMES = st.one_of(st.binary(max_size=40), st.text("ab{}:", max_size=12).map(str.encode))
ODD = [b"", b"{", b"}", b"{}", b"a}b", b"a{}b", b"{}{a}", b"}{", b"{a", b"{{a}}", b"a{b}c{d}", b"{\x00}", b"\xff\xfe"]


@given(NAMES)
@example(b"a{}")
@example(b"{}{a}")
@example(b"a{b}c")
def test_fence_is_in_the_slot_of_the_name(name):
    assert key_slot(fence_key(name)) == key_slot(name)


def test_fences_of_odd_names_are_in_their_slots():
    for name in [*ODD, *(b"}%d" % number for number in range(9))]:
        assert key_slot(fence_key(name)) == key_slot(name), name


@given(st.sets(NAMES, min_size=2, max_size=6))
@example({b"a", b"{a}"})
@example({b"", b"{}", b"}"})
def test_no_two_names_share_a_key(names):
    for one, other in combinations(names, 2):
        assert fence_key(other) not in {one, fence_key(one)}


def test_names_can_be_told_from_the_keys():
    assert fence_key(b"report:42") == b"{report:42}:lock:fence"
    assert fence_key(b"report:{42}") == b"report:{42}::lock:fence"
