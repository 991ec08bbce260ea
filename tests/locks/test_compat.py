"""What redis-py's locks do, ours do too: the same tests for both, sync and async, on each kind of server."""

import contextlib
import logging
import pickle
import threading
from pathlib import Path
from time import monotonic

import pytest
import redis
from django.core.cache import caches
from redis.exceptions import LockError, LockNotOwnedError

from redis_kit.locks.compat import AsyncLock, Lock
from tests.fixtures.kit import SERVERS, Kit
from tests.locks.support.redispy import OURS, STOCK, Bench, Client

pytestmark = pytest.mark.once

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

ONE_SERVER = [("valkey", "ours"), ("valkey", "stock")]
OTHERS = [(server, "ours") for server in SERVERS if server != "valkey"]
DIFFERENT = [(server, "ours") for server in ("debian_redis", "cluster")]  # another Lua, and keys that have slots
NAMED = {"ids": lambda where: f"{where[1]}-{where[0]}"}
EVERY_SERVER = pytest.mark.parametrize("which", [*ONE_SERVER, *OTHERS], indirect=True, **NAMED)
# For tests whose keys or scripts a server or a client of another kind could treat differently.
DIFFERENT_SERVERS = pytest.mark.parametrize("which", [*ONE_SERVER, *DIFFERENT], indirect=True, **NAMED)


@pytest.fixture(params=ONE_SERVER, **NAMED)
def which(request, settings):
    with contextlib.closing(Kit(request.getfixturevalue(request.param[0]), settings)) as kit:
        yield kit, OURS if request.param[1] == "ours" else STOCK


@pytest.fixture(params=["sync", "async"])
def bench(which, request):
    kit, classes = which
    with contextlib.closing(Bench(kit, request.param, classes[request.param])) as found:
        yield found


@EVERY_SERVER
def test_key_is_the_name_and_its_value_the_token(bench):
    lock = bench.lock(timeout=10)
    assert bench.run(lock.acquire()) is True
    assert bench.look.get(bench.key()) == lock.local.token
    assert isinstance(lock.local.token, bytes)
    bench.run(lock.release())
    assert bench.look.get(bench.key()) is None
    assert lock.local.token is None


@DIFFERENT_SERVERS
def test_token_may_be_given(bench):
    lock = bench.lock(timeout=10)
    for token in ("Tökèn 1", b"\x00 bytes {} \xff"):
        assert bench.run(lock.acquire(blocking=False, token=token))
        expected = token if isinstance(token, bytes) else token.encode()
        assert lock.local.token == bench.look.get(bench.key()) == expected
        assert bench.run(lock.owned())
        bench.run(lock.release())
        assert not bench.run(lock.locked())


def test_same_token_does_not_let_anyone_in_twice(bench):
    assert bench.run(bench.lock(timeout=10).acquire(token="t"))
    assert bench.run(bench.lock(timeout=10).acquire(token="t", blocking=False)) is False


@DIFFERENT_SERVERS
@pytest.mark.parametrize(("timeout", "decode_responses"), [(None, False), (10, True)])
def test_locked_and_owned_tell_who_has_it(bench, decode_responses, timeout):
    client = bench.connect(decode_responses=decode_responses)
    mine, other = (bench.lock(client=client, timeout=timeout) for _ in range(2))
    seen = [(bench.run(mine.locked()), bench.run(mine.owned()), bench.run(other.owned()))]
    for lock in (mine, other):
        bench.run(lock.acquire(blocking=False))
        seen.append((bench.run(mine.locked()), bench.run(mine.owned()), bench.run(other.owned())))
        bench.run(lock.release())
    assert seen == [(False, False, False), (True, True, False), (True, False, True)]


@DIFFERENT_SERVERS
def test_two_locks_exclude_each_other(bench):
    one, two = bench.lock(timeout=10), bench.lock(timeout=10)
    for first, second in ((one, two), (two, one)):
        assert bench.run(first.acquire(blocking=False))
        assert bench.run(second.acquire(blocking=False)) is False
        bench.run(first.release())


@pytest.mark.parametrize(("timeout", "most"), [(10, 10_000), (9.5, 9_500), (0.25, 250)])
def test_timeout_is_the_time_that_it_lasts(bench, timeout, most):
    lock = bench.lock(timeout=timeout)
    assert bench.run(lock.acquire())
    assert most * 0.5 < bench.look.pttl(bench.key()) <= most


@DIFFERENT_SERVERS
def test_ends_by_itself_and_is_free_again(bench):
    assert bench.run(bench.lock(timeout=0.1).acquire())
    began = monotonic()
    assert bench.run(bench.lock(timeout=1, sleep=0.02).acquire(blocking_timeout=5))
    assert monotonic() - began < 4  # it was refused and waited, and not for 5 s


@DIFFERENT_SERVERS
def test_blocking_timeout_is_how_long_it_waits(bench):
    assert bench.run(bench.lock(timeout=10).acquire())
    began = monotonic()
    assert bench.run(bench.lock(timeout=10, sleep=0.05, blocking_timeout=0.3).acquire()) is False
    assert 0.2 < monotonic() - began < 8  # and not until the 10 s of the lease are over
    assert bench.run(bench.lock(blocking_timeout=60).acquire(blocking_timeout=0)) is False


def test_blocking_may_be_said_at_creation_or_with_each_call(bench):
    assert bench.run(bench.lock(timeout=10).acquire())
    began = monotonic()
    assert bench.run(bench.lock(blocking=False).acquire()) is False
    assert bench.run(bench.lock(blocking_timeout=60).acquire(blocking=False)) is False
    assert bench.run(bench.lock(blocking=False, blocking_timeout=0.1).acquire(blocking=True)) is False
    assert monotonic() - began < 8  # and not until the 10 s of the lease are over


def test_long_sleep_does_not_outlast_the_blocking_timeout(bench):
    assert bench.run(bench.lock(timeout=10).acquire())
    began = monotonic()
    assert bench.run(bench.lock(timeout=10, sleep=60, blocking_timeout=0.2).acquire()) is False
    assert monotonic() - began < 8  # and not until the 10 s of the lease are over


@DIFFERENT_SERVERS
def test_context_manager_takes_and_releases(bench):
    with bench.inside(bench.lock(timeout=10, blocking_timeout=1)) as lock:
        assert bench.look.get(bench.key()) == lock.local.token
    assert not bench.look.exists(bench.key())


def test_context_manager_raises_when_it_stays_taken(bench):
    bench.look.set(bench.key(), "somebody")
    lock = bench.lock(timeout=10, blocking_timeout=0.05)
    with pytest.raises(LockError, match="Unable to acquire lock within the time specified"), bench.inside(lock):
        pytest.fail("the block was entered")
    assert bench.look.get(bench.key()) == b"somebody"


def test_context_manager_raises_when_it_was_lost(bench):
    with pytest.raises(LockNotOwnedError), bench.inside(bench.lock(timeout=10)):
        bench.look.delete(bench.key())


def test_loss_may_be_logged_instead(bench, caplog):
    caplog.set_level(logging.WARNING)
    with bench.inside(bench.lock(timeout=10, raise_on_release_error=False)) as lock:
        bench.look.delete(bench.key())
    assert "no longer owned when exiting context manager" in caplog.text
    assert lock.local.token is None


def test_only_a_lock_that_is_held_can_be_released(bench):
    lock = bench.lock(timeout=10)
    with pytest.raises(LockError, match="not owned or is already unlocked"):
        bench.run(lock.release())
    bench.run(lock.acquire())
    bench.run(lock.release())
    with pytest.raises(LockError, match="not owned or is already unlocked"):
        bench.run(lock.release())


@DIFFERENT_SERVERS
def test_release_leaves_what_another_holds(bench):
    lock = bench.lock(timeout=10)
    bench.run(lock.acquire())
    bench.look.set(bench.key(), "other")
    with pytest.raises(LockNotOwnedError, match="Cannot release a lock that's no longer owned"):
        bench.run(lock.release())
    assert lock.local.token is None
    assert bench.look.get(bench.key()) == b"other"


@DIFFERENT_SERVERS
def test_extend_adds_to_what_is_left(bench):
    for name, more in (("a", 10), ("b", 10.0), ("c", 9.5)):
        lock = bench.lock(name, timeout=10)
        bench.run(lock.acquire())
        assert bench.run(lock.extend(more)) is True
        assert 15_000 < bench.look.pttl(bench.key(name)) <= 10_000 + more * 1000
        assert bench.run(lock.extend(-9))
        assert 5_000 < bench.look.pttl(bench.key(name)) <= 11_000


@DIFFERENT_SERVERS
def test_extend_can_replace_what_is_left(bench):
    lock = bench.lock(timeout=10)
    bench.run(lock.acquire())
    assert bench.run(lock.extend(20, replace_ttl=True))
    assert 15_000 < bench.look.pttl(bench.key()) <= 20_000


@DIFFERENT_SERVERS
def test_reacquire_starts_the_timeout_anew(bench):
    lock = bench.lock(timeout=10)
    bench.run(lock.acquire())
    bench.look.pexpire(bench.key(), 5000)
    assert bench.run(lock.reacquire()) is True
    assert 8000 < bench.look.pttl(bench.key()) <= 10_000


def test_reacquire_gives_a_lock_that_lost_its_timeout_one_again(bench):
    lock = bench.lock(timeout=10)
    bench.run(lock.acquire())
    bench.look.persist(bench.key())
    assert bench.run(lock.reacquire()) is True
    assert 8000 < bench.look.pttl(bench.key()) <= 10_000


@pytest.mark.parametrize(("verb", "args"), [("extend", (10,)), ("reacquire", ())])
def test_only_a_lock_that_is_held_and_has_a_timeout_can_be_made_longer(bench, verb, args):
    lock = bench.lock(timeout=10)
    with pytest.raises(LockError, match=f"Cannot {verb} an unlocked lock"):
        bench.run(getattr(lock, verb)(*args))
    endless = bench.lock("endless")
    bench.run(endless.acquire())
    with pytest.raises(LockError, match=f"Cannot {verb} a lock with no timeout"):
        bench.run(getattr(endless, verb)(*args))
    bench.run(endless.release())
    bench.run(lock.acquire())
    bench.look.delete(bench.key())
    with pytest.raises(LockNotOwnedError, match=f"Cannot {verb} a lock that's no longer owned"):
        bench.run(getattr(lock, verb)(*args))
    assert not bench.look.exists(bench.key())


@DIFFERENT_SERVERS
def test_extend_does_not_touch_another_holder(bench):
    lock = bench.lock(timeout=10)
    bench.run(lock.acquire())
    bench.look.set(bench.key(), "other", px=5000)
    for call in (lambda: lock.extend(60), lambda: lock.extend(60, replace_ttl=True), lock.reacquire):
        with pytest.raises(LockNotOwnedError):
            bench.run(call())
    assert bench.look.pttl(bench.key()) <= 5000


@DIFFERENT_SERVERS
def test_name_may_be_bytes(bench):
    check_name(bench, bench.key().encode())


def test_name_may_be_a_memoryview(bench):
    # Not on a Cluster, for redis-py finds no slot for it.
    check_name(bench, memoryview(bench.key().encode()))


def check_name(bench, name):
    lock = bench.client.lock(name, lock_class=bench.lock_class, timeout=10)
    assert lock.name is name
    assert bench.run(lock.acquire())
    assert bench.look.get(bench.key()) == lock.local.token
    assert bench.run(lock.owned())
    bench.run(lock.release())


@DIFFERENT_SERVERS
def test_encoding_of_the_client_counts(bench):
    client = bench.connect(encoding="latin-1")
    lock = bench.lock("ä", client=client, timeout=10)
    assert bench.run(lock.acquire(token="ö"))
    assert bench.look.get(bench.key("ä").encode("latin-1")) == b"\xf6"
    bench.run(lock.release())


def test_arguments_are_attributes(bench):
    options = {"timeout": 1, "sleep": 2, "blocking": False, "blocking_timeout": 3, "raise_on_release_error": False}
    lock = bench.lock(thread_local=False, **options)
    assert {name: getattr(lock, name) for name in options} == options
    assert (lock.redis, lock.name, lock.thread_local) == (bench.client, bench.key(), False)
    direct = bench.lock_class(bench.client, bench.key(), 5, 0.5, True, 7, False)
    assert (direct.timeout, direct.sleep, direct.blocking_timeout, direct.thread_local) == (5, 0.5, 7, False)
    assert isinstance(direct, STOCK[bench.kind])


def test_token_that_is_handed_over_releases_and_extends(bench):
    lock = bench.lock(timeout=10)
    bench.run(lock.acquire())
    other = bench.lock(timeout=10, thread_local=False)
    other.local.token = lock.local.token
    assert bench.run(other.owned())
    assert bench.run(other.extend(10))
    bench.run(other.do_release(lock.local.token))
    with pytest.raises(LockNotOwnedError):
        bench.run(lock.release())


@DIFFERENT_SERVERS
def test_lock_shared_by_threads_is_released_by_any(bench):
    lock = bench.lock(timeout=10, thread_local=False)
    bench.run(lock.acquire())
    seen = []
    thread = threading.Thread(target=lambda: seen.append(lock.local.token))
    thread.start()
    thread.join()
    assert seen == [lock.local.token]


@pytest.mark.parametrize("thread_local", [True, False])
def test_lock_can_not_be_pickled(bench, thread_local):
    with pytest.raises((TypeError, pickle.PicklingError)):
        pickle.dumps(bench.lock(thread_local=thread_local))


def test_script_may_be_replaced_on_one_lock(bench):
    lock = bench.lock(timeout=10)
    lock.lua_extend = bench.client.register_script("""
        if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
        return redis.call('pexpire', KEYS[1], ARGV[2])
    """)
    bench.run(lock.acquire())
    assert bench.run(lock.extend(20))
    assert 15_000 < bench.look.pttl(bench.key()) <= 20_000


@DIFFERENT_SERVERS
def test_scripts_take_the_keys_and_arguments_of_redis_py(bench):
    lock = bench.lock(timeout=10)
    bench.run(lock.acquire())
    given = {"keys": [lock.name], "client": bench.client}
    assert bench.run(lock.lua_extend(args=[lock.local.token, 10_000, "0"], **given)) == 1
    assert 15_000 < bench.look.pttl(bench.key()) <= 20_000
    assert bench.run(lock.lua_reacquire(args=[lock.local.token, 5_000], **given)) == 1
    assert bench.look.pttl(bench.key()) <= 5_000
    assert bench.run(lock.lua_release(args=["no"], **given)) == 0
    assert bench.run(lock.lua_release(args=[lock.local.token], **given)) == 1
    assert bench.run(lock.lua_release(args=[lock.local.token], **given)) == 0


@DIFFERENT_SERVERS
def test_stock_locks_of_the_same_name_are_excluded_and_exclude(bench):
    stock = bench.look.lock(bench.key(), timeout=10)
    assert stock.acquire()
    assert bench.run(bench.lock(timeout=10).acquire(blocking=False)) is False
    stock.release()
    mine = bench.lock(timeout=10)
    assert bench.run(mine.acquire(blocking=False))
    assert stock.acquire(blocking=False) is False
    bench.run(mine.release())
    assert stock.acquire(blocking=False)
    stock.release()


def test_locks_of_both_kinds_exclude_each_other_in_all_processes(kit, program, tmp_path: Path):
    file = tmp_path / "counter"
    file.write_text("0")
    processes = [program(COUNT, file, kind) for kind in ("ours", "stock", "ours")]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert file.read_text() == "60"


def test_client_may_be_told_to_use_our_class_only():
    assert type(Client().lock("x")) is Lock
    assert type(Client().lock("x", lock_class=redis.lock.Lock)) is redis.lock.Lock
    assert type(redis.asyncio.Redis().lock("x", lock_class=AsyncLock)) is AsyncLock


def test_locks_of_a_cache_are_ours(kit, settings):
    options = {"REDIS_CLIENT_CLASS": "tests.locks.support.redispy.Client"}
    cache = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": kit.url, "KEY_PREFIX": kit.prefix}
    settings.CACHES = {**settings.CACHES, "locks": {**cache, "OPTIONS": options}}
    with caches["locks"].lock("x", timeout=10) as lock:
        assert type(lock) is Lock
        assert kit.client.get(caches["locks"].make_key("x")) == lock.local.token.decode()
        assert lock.fence
    caches["locks"].close()
    for key in kit.client.scan_iter(f"*{kit.prefix}*"):
        kit.client.delete(key)
