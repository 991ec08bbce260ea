"""A server that answers with refusals: views wait and are counted once, and one log line reports it."""

import asyncio
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from redis_kit.core import connections, primitive
from redis_kit.core.background import MAX_PAUSE
from redis_kit.core.errors import ConfigurationError, OutOfMemory, PermissionDenied, PoolExhausted, RedisUnavailable
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.steps import TolerantBatch
from redis_kit.pageviews import PageViews, aflush, dropped, flush
from redis_kit.pageviews.batch import Event, ViewBatch
from redis_kit.pageviews.buffer import Buffer, Dropped, buffer
from redis_kit.pageviews.periods import now
from tests.fixtures.servers import wait_for

NOTHING = Dropped(0, 0, 0, 0)


def record(count, *, page="news", key=""):
    return sum(buffer.record(Event(now(), page, key, f"visitor {number}")) for number in range(count))


def told(caplog):
    return [one.message for one in caplog.records if one.name == "redis_kit.pageviews"]


@pytest.fixture
def guarded_kit(own_kit, monkeypatch):
    """The kit as the server's user ``counter``."""
    monkeypatch.setattr(connections, "WORKER_WAIT", 0.3)
    monkeypatch.setattr(primitive, "_log_limit", LogRateLimit())
    with own_kit.server.client() as admin:
        admin.acl_setuser("counter", enabled=True, passwords=["+first"], keys=["*"], categories=["+@all"])
    port = own_kit.server.port
    own_kit.patient = True  # a refusal is an answer, and a slow machine is no outage
    own_kit.connect({"URL": f"redis://counter:first@127.0.0.1:{port}/0"})
    return own_kit


@contextmanager
def other_password(kit, admin):
    admin.execute_command("ACL", "SETUSER", "counter", "resetpass", ">second")
    admin.execute_command("CLIENT", "KILL", "USER", "counter")
    yield
    admin.execute_command("ACL", "SETUSER", "counter", ">first")


@contextmanager
def switched_off(kit, admin):
    admin.execute_command("ACL", "SETUSER", "counter", "off")
    admin.execute_command("CLIENT", "KILL", "USER", "counter")
    yield
    admin.execute_command("ACL", "SETUSER", "counter", "on")


def without(command):
    @contextmanager
    def denied(kit, admin):
        admin.execute_command("ACL", "SETUSER", "counter", f"-{command}")
        yield
        admin.execute_command("ACL", "SETUSER", "counter", f"+{command}")

    denied.__name__ = f"without_{command}"
    return denied


@contextmanager
def without_keys(kit, admin):
    admin.execute_command("ACL", "SETUSER", "counter", "resetkeys", "~else:*")
    yield
    admin.execute_command("ACL", "SETUSER", "counter", "resetkeys", "~*")


@contextmanager
def full(kit, admin):
    admin.config_set("maxmemory", 1)
    yield
    admin.config_set("maxmemory", 0)


@contextmanager
def read_only(kit, admin):
    admin.replicaof("127.0.0.1", 1)
    yield
    admin.replicaof("NO", "ONE")


@contextmanager
def without_replicas(kit, admin):
    admin.config_set("min-replicas-to-write", 1)
    yield
    admin.config_set("min-replicas-to-write", 0)


@contextmanager
def unable_to_save(kit, admin):
    dump = Path(admin.config_get("dir")["dir"], "dump.rdb")
    dump.mkdir()
    admin.config_set("save", "3600 1")
    admin.bgsave()
    wait_for(lambda: admin.info("persistence")["rdb_last_bgsave_status"] == "err")
    yield
    admin.config_set("save", "")
    dump.rmdir()
    admin.bgsave()
    wait_for(lambda: admin.info("persistence")["rdb_last_bgsave_status"] == "ok")


@contextmanager
def all_connections_in_use(kit, admin):
    kit.options(MAX_CONNECTIONS=1)
    client = connections.client("default", "worker")
    waiting = threading.Thread(target=client.block, args=(60, "BLPOP", "blocked", "60"), daemon=True)
    waiting.start()
    wait_for(lambda: int(admin.info("clients")["blocked_clients"]))
    yield
    admin.rpush("blocked", "x")
    waiting.join(20)


REFUSALS = [
    (other_password, PermissionDenied),
    (switched_off, PermissionDenied),
    (without("evalsha"), PermissionDenied),
    (without("sadd"), PermissionDenied),
    (without("hincrby"), PermissionDenied),
    (without("zmscore"), PermissionDenied),
    (without("pexpire"), PermissionDenied),
    (without("pfadd"), PermissionDenied),
    (without("hset"), PermissionDenied),
    (without_keys, PermissionDenied),
    (full, OutOfMemory),
    (read_only, RedisUnavailable),
    (without_replicas, RedisUnavailable),
    (unable_to_save, RedisUnavailable),
    (all_connections_in_use, PoolExhausted),
]


@pytest.mark.parametrize(("refusal", "error"), REFUSALS, ids=lambda one: getattr(one, "__name__", ""))
@pytest.mark.usefixtures("single_connection")
def test_views_wait_while_they_are_refused_and_are_counted_once(guarded_kit, no_thread, caplog, refusal, error):
    record(10, key="1")
    wait_for(flush)
    with guarded_kit.server.client() as admin:
        with refusal(guarded_kit, admin):
            record(1, page="new")
            record(600, key="1")
            for _ in range(3):
                assert flush() is False
                assert isinstance(buffer._error, error)
            assert buffer.waiting == 601
            assert dropped() == NOTHING
            (down,) = told(caplog)
            assert down.startswith("Can't count page views; up to 10000 wait and are sent again: ")
        wait_for(flush)
    assert dropped() == NOTHING
    assert PageViews("news").views() == PageViews("news", 1).views() == 610
    assert PageViews("new").views() == 1
    assert PageViews.site().views() == 611
    assert told(caplog)[1:] == ["Page views are counted again."]


def test_views_beyond_the_buffer_are_counted_while_access_is_denied(guarded_kit, no_thread):
    record(10)
    wait_for(flush)
    with guarded_kit.server.client() as admin:
        with other_password(guarded_kit, admin):
            record(600)
            assert not flush()
            assert record(Buffer.CAPACITY) == Buffer.CAPACITY - 600
            assert not flush()
            assert dropped() == Dropped(overflow=600, outage=0, refused=0, failed=0)
        wait_for(flush)
    assert PageViews("news").views() == Buffer.CAPACITY + 10


def test_refused_batch_is_retried_with_growing_pauses_an_outage_is_not(guarded_kit, no_thread):
    record(10)
    wait_for(flush)
    pauses = []
    with guarded_kit.server.client() as admin, other_password(guarded_kit, admin):
        record(1)
        for _ in range(7):
            assert not flush()
            pauses.append(buffer._pause)
    assert pauses == [
        2 * Buffer.INTERVAL,
        4 * Buffer.INTERVAL,
        8 * Buffer.INTERVAL,
        16 * Buffer.INTERVAL,
        MAX_PAUSE,
        MAX_PAUSE,
        MAX_PAUSE,
    ]
    wait_for(flush)
    assert buffer._pause == Buffer.INTERVAL
    guarded_kit.server.stop()
    record(1)
    assert [(flush(), buffer._pause) for _ in range(3)] == [(False, Buffer.INTERVAL)] * 3


def test_thread_counts_the_views_after_the_password_is_right_again(guarded_kit, caplog):
    record(10)
    wait_for(flush)
    with guarded_kit.server.client() as admin, other_password(guarded_kit, admin):
        record(700)
        wait_for(lambda: buffer._error)
    wait_for(lambda: PageViews("news").views() == 710, timeout=40)
    assert dropped() == NOTHING
    assert len(told(caplog)) == 2


def test_log_names_a_new_reason(guarded_kit, no_thread, caplog):
    record(10)
    wait_for(flush)
    with guarded_kit.server.client() as admin, other_password(guarded_kit, admin):
        record(1)
        assert not flush()
        guarded_kit.server.freeze()
        assert not flush()
        guarded_kit.server.thaw()
        wait_for(lambda: not flush() and isinstance(buffer._error, PermissionDenied))
    wait_for(flush)
    assert len(told(caplog)) == 4


def test_flush_in_an_event_loop_returns_false_if_views_wait(guarded_kit, no_thread):
    record(1)
    wait_for(flush)
    record(5)
    with guarded_kit.server.client() as admin, other_password(guarded_kit, admin):
        assert asyncio.run(aflush()) is False
    assert asyncio.run(aflush()) is True
    assert PageViews("news").views() == 6


def test_add_follows_the_policy(guarded_kit, twin, caplog):
    page = PageViews("news")
    assert twin(page.add, "joe")
    with guarded_kit.server.client() as admin, without("hincrby")(guarded_kit, admin):
        assert [twin(page.add, "joe") for _ in range(3)] == [False] * 3
        with pytest.raises(PermissionDenied, match="refused access"):
            twin(PageViews("news", on_failure="raise").add, "joe")
    assert twin(page.add, "joe")
    assert page.views() == 2


def test_add_to_a_key_of_another_type_is_false_and_logged_once(kit, twin, caplog):
    page = PageViews("spoilt")
    kit.client.lpush(page.key(f"visitors:{now():%Y-%m}"), "x")
    assert [twin(page.add, "joe") for _ in range(3)] == [False] * 3
    (one,) = told(caplog)
    assert "is a list in place of a string" in one


def test_views_wait_if_one_of_the_nodes_of_a_batch_is_lost(kit):
    batch = ViewBatch([Event(now(), "news", "", "visitor")], using="default")
    steps, lost = batch.send(), RedisUnavailable("down")
    next(steps)
    calls = steps.send([1]).calls
    assert len(calls) == 2
    with pytest.raises(RedisUnavailable) as caught:
        steps.send([lost, 0])
    assert caught.value.indeterminate
    assert batch.tried is not None


def test_unexpected_error_of_one_call_leaves_the_others_counted(kit, caplog):
    batch = ViewBatch([Event(now(), page, "", "v") for page in ("front", "elsewhere")], using="default")

    def send():
        flow, reply = batch.send(), None
        while True:
            step = flow.send(reply)
            reply = step.run(connections.client())
            if len(reply) == 3:  # those of two pages and the site
                assert isinstance(step, TolerantBatch)
                reply[1] = ConfigurationError("MOVED 7 127.0.0.1:1")

    with pytest.raises(StopIteration) as ended:
        send()
    assert ended.value.value == 1
    assert PageViews("front").views() == 1
    assert "MOVED 7" in told(caplog)[0]
