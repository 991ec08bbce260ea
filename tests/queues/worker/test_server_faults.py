"""A worker on a server that does not serve for a while: it comes back by itself, and no job is lost or done twice."""

import contextlib
import shutil
import threading
import time

import pytest
import redis

from redis_kit.core.errors import KeyConflict, RedisUnavailable
from redis_kit.core.flow import single
from redis_kit.core.steps import Call
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.shared.failures import Outage
from redis_kit.queues.worker.supervisor.supervisor import Supervisor
from tests.fixtures.kit import Kit
from tests.fixtures.process import wait_for
from tests.queues.support.journal import LASTING
from tests.queues.support.tasks import note
from tests.queues.support.traffic import Traffic

pytestmark = [pytest.mark.alone(25), pytest.mark.once]

EMPTY = QueueCounts(0, 0, 0, 0)
NO_ZSETS = ("jobs", "info", "minutes", "reasons", "signal", "sequence", "paused")
PARTS = (*NO_ZSETS, "ready", "scheduled", "running", "dead", "workers")
WITHIN = 4.0  # seconds: a breaker asks each second, a worker at least each 2 s


@pytest.fixture
def server(make_server, tmp_path):
    """A server whose data folder a test may remove."""
    return make_server(tcp=True, data_dir=tmp_path / "data", extra_args=("--busy-reply-threshold", "100"))


@contextlib.contextmanager
def frozen(server, admin):
    server.freeze()
    time.sleep(2)  # longer than a worker waits for an answer
    yield
    server.thaw()


@contextlib.contextmanager
def asleep(server, admin):
    with server.client(socket_timeout=10) as other, in_thread(other.execute_command, "DEBUG", "SLEEP", "1.5"):
        yield


@contextlib.contextmanager
def busy(server, admin):
    """A script of somebody else, which nobody but he may kill."""
    with server.client(socket_timeout=10) as other, in_thread(other.eval, "while true do end", 0) as failed:
        yield
        assert not failed
        admin.script_kill()


@contextlib.contextmanager
def paused(server, admin):
    admin.client_pause(1000, all=True)
    yield
    admin.ping()  # is paused too


@contextlib.contextmanager
def paused_for_writes(server, admin):
    admin.client_pause(60_000, all=False)
    yield
    admin.client_unpause()


@contextlib.contextmanager
def crowded(server, admin):
    admin.config_set("maxclients", 1)
    admin.execute_command("CLIENT KILL TYPE normal SKIPME yes")
    yield
    admin.config_set("maxclients", 1000)


@contextlib.contextmanager
def unable_to_save(server, admin):
    shutil.rmtree(server.options["data_dir"])
    admin.config_set("save", "3600 1")
    admin.bgsave()
    yield
    admin.config_set("save", "")


@contextlib.contextmanager
def demoted(server, admin):
    """A primary no more, which also wakes those who wait on it, with an error."""
    admin.replicaof("127.0.0.1", 1)
    yield
    admin.replicaof("NO", "ONE")


@contextlib.contextmanager
def in_thread(call, *arguments):
    """Make a call that takes long; the list has its errors so far."""
    failed = []

    def run():
        try:
            call(*arguments)
        except redis.RedisError as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield failed
    thread.join(10)


# And what callers are told, where the server says it.
TROUBLES = {
    frozen: "",
    asleep: "",
    busy: "BUSY",
    paused: "",
    paused_for_writes: "",
    crowded: "max number of clients",
    unable_to_save: "MISCONF",
    demoted: "read only replica",
}


def test_every_trouble_of_the_server_is_outlasted(server, settings, journal, start_worker):
    with contextlib.closing(Kit(server, settings, patient=False)) as kit, server.client(socket_timeout=10) as admin:
        kit.options(QUEUES=LASTING)
        worker = start_worker("--threads", 2)
        with Traffic(journal) as traffic:
            traffic.back()
            for trouble, said in TROUBLES.items():
                del traffic.errors[:]
                with trouble(server, admin):
                    assert traffic.stands(), trouble.__name__
                took = traffic.back()
                print(f"{trouble.__name__}: {took:.2f} s, {len(traffic.errors)} calls failed")
                assert took <= WITHIN, trouble.__name__
                assert any(said in str(error) for error in traffic.errors), trouble.__name__
            traffic.settle()
        assert admin.info("clients")["connected_clients"] < 20
        wait_for(lambda: Queue("default").counts() == EMPTY)
        assert worker.poll() is None


def test_read_does_not_end_the_outage_of_a_server_without_writes(own_server, own_kit, caplog):
    supervisor = Supervisor(Options(("default",)))
    queue = supervisor.queues[0]
    with own_server.client() as admin:
        admin.replicaof("127.0.0.1", 1)
        for _ in range(2):
            for steps in (single(Call("DEL", queue.key("x"))), single(Call("EXISTS", queue.key("x")))):
                with pytest.raises(RedisUnavailable):
                    queue.run_flow(steps)
        admin.replicaof("NO", "ONE")
        queue.run_flow(single(Call("EXISTS", queue.key("x"))))
    said = [record.message.partition(";")[0] for record in caplog.records]
    assert said == ["Lost connection to Redis", "Reconnected to Redis."]


def test_outage_ends_in_the_log_also_while_a_queue_refuses_access(own_server, own_kit, caplog):
    queues = [Queue("default"), Queue("refused")]
    supervisor = Supervisor(Options(("default", "refused")))
    with own_server.client() as admin:
        allowed = f"{queues[0].key('')}*"
        admin.acl_setuser("worker", enabled=True, nopass=True, keys=[allowed], categories=["+@all"])
        own_kit.connect({"URL": f"redis://worker:any@127.0.0.1:{own_server.port}/0"})
        admin.replicaof("127.0.0.1", 1)
        with pytest.raises(RedisUnavailable):
            supervisor.queues[0].run_flow(single(Call("DEL", queues[0].key("x"))))
        admin.replicaof("NO", "ONE")
        supervisor.queues[0].run_flow(single(Call("EXISTS", queues[0].key("x"))))
    said = [record.message.partition(";")[0] for record in caplog.records]
    assert said == ["Lost connection to Redis", "Reconnected to Redis."]


def test_connection_lost_again_and_again_is_logged_once_a_minute(caplog):
    outage, lost = Outage(), RedisUnavailable("down")
    for error in (lost, None, lost, lost, None):
        outage.say(error)
        assert outage.lasts is bool(error)
    assert [record.message for record in caplog.records] == [
        "Lost connection to Redis; retrying: down",
        "Reconnected to Redis.",
    ]


def test_what_the_server_only_drops_reaches_no_caller(own_server, settings, journal, start_worker):
    with contextlib.closing(Kit(own_server, settings)) as kit, own_server.client() as admin:
        kit.options(QUEUES=LASTING)
        worker = start_worker("--threads", 2)
        with Traffic(journal) as traffic:
            traffic.back()
            for _ in range(30):
                admin.script_flush()
                time.sleep(0.02)
            assert not traffic.errors
            for _ in range(15):
                admin.execute_command("CLIENT KILL TYPE normal SKIPME yes")
                time.sleep(0.1)
                traffic.back()  # or a busy machine would not come to more than its first steps between two cuts
            print(f"{len(traffic.errors)} of {len(traffic.sure)} calls failed, with all connections cut 15 times")
            traffic.settle()
        assert len(traffic.errors) <= 15
        wait_for(lambda: Queue("default").counts() == EMPTY)
        assert worker.poll() is None


def wrong(client, part, key):
    if part == "sequence":
        client.set(key, "no number")
    elif part in NO_ZSETS:
        client.zadd(key, {"x": 0})
    else:
        client.rpush(key, "x")


def test_what_somebody_does_to_the_keys_does_not_stop_the_worker(own_server, settings, journal, start_worker):
    with contextlib.closing(Kit(own_server, settings)) as kit, own_server.client() as admin:
        kit.options(QUEUES=LASTING)
        worker = start_worker("--queue-name", "mail,default", "--threads", 2)
        with Traffic(journal) as traffic:
            traffic.back()
            for part in PARTS:
                key = Queue("mail").key(part)
                with admin.pipeline() as both:
                    both.delete(key)
                    wrong(both, part, key)
                    both.execute()
                with contextlib.suppress(KeyConflict):
                    note.using(queue_name="mail").enqueue(f"lost-{part}")
                traffic.back(within=5)  # the other queue does not mind
                admin.delete(key)
                note.using(queue_name="mail").enqueue(f"mail-{part}")
                wait_for(lambda part=part: f"mail-{part}" in traffic.ended())
            for _ in range(3):
                admin.flushall()
                traffic.forget()
                traffic.back()
            traffic.settle(beside={f"{kind}-{part}" for kind in ("mail", "lost") for part in PARTS})
        wait_for(lambda: Queue("default").counts() == EMPTY)
        assert worker.poll() is None
