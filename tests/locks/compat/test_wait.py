"""Waiting on a client of redis-py: woken by holders of ours, looking again where the holder is redis-py's own."""

import contextlib
import statistics
import threading
from pathlib import Path
from time import monotonic

import pytest
import redis
import redis.asyncio.retry
import redis.lock
from redis.backoff import NoBackoff
from redis.retry import Retry

from redis_kit.locks.compat import Lock
from redis_kit.locks.compat import lock as module
from redis_kit.locks.compat.lock import side_keys
from tests.fixtures.servers import wait_for
from tests.locks.support.redispy import OURS, Bench

pytestmark = pytest.mark.alone(15)

COUNT = """
from pathlib import Path
import redis, redis.lock
from redis_kit.locks.compat import Lock
file, kind = Path(sys.argv[3]), {"ours": Lock, "stock": redis.lock.Lock}[sys.argv[4]]
client = redis.Redis.from_url(sys.argv[2])
for _ in range(20):
    with client.lock(sys.argv[1] + ":a", lock_class=kind, timeout=30, sleep=0.005):
        number = int(file.read_text())
        os.sched_yield()
        file.write_text(str(number + 1))
"""


@pytest.fixture
def client(kit):
    with redis.Redis.from_url(kit.url) as found:
        yield found


@pytest.fixture
def key(kit, client):
    name = f"{kit.prefix}:a"
    yield name
    client.delete(name, *side_keys(name.encode()))


def _wait_in_threads(make, count=1):
    """Let threads wait for a lock each, and note when they got it."""
    got = []

    def work():
        with make() as lock:
            got.append((monotonic(), lock.fence))

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, got


def test_waiter_is_woken_at_once(any_kit):
    with contextlib.closing(Bench(any_kit, "sync", OURS["sync"])) as bench:
        delays = []
        for name in ("a", "a", "a{b}c", "}odd"):
            holder = bench.lock(name, timeout=30)
            holder.acquire()
            threads, got = _wait_in_threads(lambda name=name: bench.lock(name, timeout=30, sleep=30))
            wait_for(lambda name=name: bench.look.exists(side_keys(bench.key(name).encode()).waiters))
            began = monotonic()
            holder.release()
            threads[0].join(10)
            delays.append(got[0][0] - began)
        assert statistics.median(delays) < 0.8  # without a wake-up a waiter asks again after 1 s
        assert max(delays) < 10  # and not after its sleep of 30 s


def test_waiter_sends_at_most_two_commands_a_second(kit, key, client, commands):
    holder, waiter = Lock(client, key, timeout=30), Lock(client, key, sleep=0.01)
    holder.acquire()
    waiter.acquire(blocking_timeout=0.01)
    with commands(kit) as sent:
        began = monotonic()
        assert waiter.acquire(blocking_timeout=2) is False
        assert 2 <= monotonic() - began < 10
    assert set(sent) == {"EVALSHA", "BLPOP"}
    assert len(sent) <= 6


@pytest.mark.parametrize(("sleep", "least", "most"), [(0.2, 4, 7), (0, 30, 110)])
def test_stock_holder_is_asked_about_every_sleep(kit, key, client, commands, sleep, least, most):
    client.lock(key, timeout=30).acquire()
    Lock(client, key).acquire(blocking=False)
    with commands(kit) as sent:
        assert Lock(client, key, sleep=sleep).acquire(blocking_timeout=1) is False
    assert set(sent) == {"EVALSHA"}
    assert least <= len(sent) <= most
    assert client.keys(f"*{key}*") == [key.encode()]


def test_lock_of_a_stock_holder_is_taken_soon_after_its_release(key, client):
    stock = client.lock(key, timeout=30)
    stock.acquire()
    threads, got = _wait_in_threads(lambda: Lock(client, key, sleep=0.05))
    threads[0].join(0.2)
    assert not got
    began = monotonic()
    stock.release()
    threads[0].join(10)
    assert got[0][0] - began < 10  # and not after the 30 s of the lease


def test_end_of_a_dead_holders_time_is_not_slept_through(key, client):
    for kind in (redis.lock.Lock, Lock):
        began = monotonic()
        assert client.lock(key, lock_class=kind, timeout=0.3).acquire()
        with Lock(client, key, timeout=30, sleep=5):
            assert 0.28 < monotonic() - began < 4  # and not after the sleep of 5 s


def test_stock_waiter_gets_what_ours_releases(key, client):
    holder = Lock(client, key, timeout=30)
    holder.acquire()
    thread = threading.Thread(target=holder.do_release, args=[holder.local.token])
    thread.start()
    assert client.lock(key, timeout=30, sleep=0.02).acquire(blocking_timeout=5)
    thread.join()


def test_of_all_who_wait_in_a_process_one_blocks(key, client, blocked):
    holder = Lock(client, key, timeout=30)
    holder.acquire()
    threads, got = _wait_in_threads(lambda: Lock(client, key, timeout=30), count=20)
    seen, until = set(), monotonic() + 0.3
    wait_for(lambda: seen.add(len(blocked())) or monotonic() > until)
    assert max(seen) == 1
    began = monotonic()
    holder.release()
    for thread in threads:
        thread.join(20)
    assert len(got) == 20
    assert sorted(got) == sorted(got, key=lambda one: one[1])
    assert monotonic() - began < 5


def test_one_who_gives_up_behind_others_has_asked(key, client):
    holder = Lock(client, key, timeout=30)
    holder.acquire()
    threads, got = _wait_in_threads(lambda: Lock(client, key, timeout=30, sleep=30))
    wait_for(lambda: client.exists(side_keys(key.encode()).waiters))
    began = monotonic()
    assert Lock(client, key).acquire(blocking_timeout=0.2) is False
    assert 0.2 <= monotonic() - began < 10  # and not after the sleep of 30 s
    holder.release()
    threads[0].join(10)
    assert got


@pytest.mark.parametrize("kind", OURS)
def test_waiter_survives_a_stall(own_kit, monkeypatch, kind):
    failures, pause = [], module.pause
    monkeypatch.setattr(module, "pause", lambda *args: [failures.append(args), pause(*args)][1])
    with contextlib.closing(Bench(own_kit, kind, OURS[kind])) as bench:
        holder = Lock(own_kit.raw, bench.key(), timeout=30)
        assert holder.acquire()
        retry = (redis.asyncio.retry.Retry if kind == "async" else Retry)(NoBackoff(), 0)
        waiter = bench.lock(client=bench.connect(socket_timeout=0.25, retry=retry), timeout=30, sleep=0.01)
        threads = [threading.Thread(target=lambda: failures.append(bench.run(waiter.acquire())))]
        threads[0].start()
        wait_for(lambda: bench.look.exists(side_keys(bench.key().encode()).waiters))
        own_kit.server.freeze()
        wait_for(lambda: failures)
        own_kit.server.thaw()
        holder.release()
        threads[0].join(20)
        assert failures[-1] is True


@pytest.mark.parametrize("most", [1, 2, 3])
def test_waiters_leave_connections_to_the_holders(kit, key, most):
    pool = redis.BlockingConnectionPool.from_url(kit.url, max_connections=most, timeout=20)
    names = [f"{key}:{number}" for number in range(4)]
    with redis.Redis(connection_pool=pool) as client:
        holders = [Lock(client, name, timeout=30) for name in names]
        for holder in holders:
            holder.acquire()
        started = [_wait_in_threads(lambda name=name: Lock(client, name, timeout=30, sleep=0.05)) for name in names]
        wait_for(lambda: kit.client.exists(*(side_keys(name.encode()).waiters for name in names)) == len(names))
        began = monotonic()
        for holder in holders:
            holder.release()
        assert monotonic() - began < 10  # and not after the 20 s for which the pool lets a caller wait
        for (thread,), got in started:
            thread.join(10)
            assert got
        client.delete(*names, *(side for name in names for side in side_keys(name.encode())))


def test_client_of_one_connection_is_not_blocked(kit, key):
    with redis.Redis.from_url(kit.url, single_connection_client=True) as client:
        holder = Lock(client, key, timeout=30)
        holder.acquire()
        threads, got = _wait_in_threads(lambda: Lock(client, key, timeout=30, sleep=0.05))
        threads[0].join(0.2)
        began = monotonic()
        holder.release()
        assert monotonic() - began < 10  # and not after the 30 s of the lease
        threads[0].join(10)
        assert got


@pytest.mark.parametrize("limit", [0.3, 0.05])
def test_wait_is_shorter_than_the_clients_own_limit(kit, key, limit):
    with redis.Redis.from_url(kit.url, socket_timeout=limit, retry=Retry(NoBackoff(), 0)) as client:
        Lock(client, key, timeout=30).acquire()
        began, connection = monotonic(), client.client_id()
        assert Lock(client, key).acquire(blocking_timeout=1) is False
        assert 1 <= monotonic() - began < 10
        assert client.client_id() == connection  # which would be another one after a read that took too long


def test_server_that_refuses_to_block_is_asked_every_sleep(make_server):
    server = make_server(tcp=True)
    with server.client() as admin, server.client(username="u", password="p") as client:
        admin.execute_command("ACL SETUSER u on >p ~* +@all -blpop")
        holder = Lock(client, "a", timeout=30)
        holder.acquire()
        threads, got = _wait_in_threads(lambda: Lock(client, "a", timeout=30, sleep=0.05))
        wait_for(lambda: "cmdstat_blpop" in admin.info("commandstats"))
        began = monotonic()
        holder.release()
        threads[0].join(10)
        assert got[0][0] - began < 0.5


def test_signals_do_not_pile_up(key, client):
    signal = side_keys(key.encode()).signal
    for _ in range(3):
        holder = Lock(client, key, timeout=30)
        holder.acquire()
        client.set(side_keys(key.encode()).waiters, "1", px=2500)  # of a waiter that is gone
        holder.release()
        assert client.llen(signal) == 1
        assert 0 < client.pttl(signal) <= 1000


def test_locks_of_both_kinds_exclude_each_other_in_all_processes(kit, program, tmp_path: Path):
    file = tmp_path / "counter"
    file.write_text("0")
    processes = [program(COUNT, file, kind) for kind in ("ours", "stock", "ours")]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert file.read_text() == "60"


def test_waiter_that_the_server_sends_away_asks_again(make_server):
    server = make_server(tcp=True)
    with server.client(retry=Retry(NoBackoff(), 0)) as client:
        Lock(client, "a", timeout=30).acquire()
        threads, got = _wait_in_threads(lambda: Lock(client, "a", timeout=30, sleep=0.05))
        wait_for(lambda: client.info("clients")["blocked_clients"] == 1)
        client.client_unblock(_id_of_the_blocked(client), error=True)  # as a demoted server does
        client.delete("a")
        threads[0].join(10)
        assert got


def _id_of_the_blocked(client):
    return next(int(one["id"]) for one in client.client_list() if "b" in one["flags"])
