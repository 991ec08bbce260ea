"""What waits, what is stored and what is dropped: on servers that stop, freeze, are full or refuse."""

import logging
import subprocess
import textwrap
import threading

import pytest

from redis_kit.core import connections, flow
from redis_kit.logs import Logs
from redis_kit.logs.buffer import Buffer, buffer
from redis_kit.logs.component import Logs as LogsComponent
from tests.fixtures.fork_server import start_python
from tests.fixtures.servers import wait_for
from tests.logs.support.levels import levels

UNREACHABLE = {"URL": "redis://127.0.0.1:1/0"}


@pytest.fixture
def hasty(monkeypatch):
    """The thread gives a server a part of its time."""
    monkeypatch.setattr(connections, "WORKER", 0.3)


def counts():
    return buffer.stored, buffer.dropped(), buffer.waiting()


def stored():
    return sum(levels().values())


def test_every_record_of_several_threads_is_stored_or_dropped_and_counted(kit, log):
    def write(thread):
        for number in range(2500):
            log.log((20, 30, 40, 50)[number % 4], "Kind %d", number % 50) if number % 2 else KINDS[number % 50](log)

    KINDS = [lambda log, text=f"Message {number} of %s": log.error(text, "x") for number in range(50)]
    threads = [threading.Thread(target=write, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for(lambda: buffer.flush(10.0))
    assert buffer.stored + buffer.dropped() == 20_000
    assert not buffer.waiting()
    found = levels()
    assert found.pop("dropped", 0) == buffer.dropped()
    assert sum(found.values()) == buffer.stored
    assert sum(message.records for message in Logs().common()) == buffer.stored


@pytest.mark.parametrize("kind", ["valkey", "debian_redis", "cluster"])
def test_batch_that_is_sent_twice_is_stored_once(request, settings, kind, log, no_thread):
    from tests.fixtures.kit import Kit

    kit = Kit(request.getfixturevalue(kind), settings)
    for number in range(3):
        log.error("Order %d", number)
    assert buffer._next()
    call, _, _ = buffer._batch
    client = connections.client("default", "worker")
    assert [flow.run(flow.single(call), client) for _ in range(3)] == [1, 0, 0]
    assert levels() == {"ERROR": 3}
    assert len(Logs().recent()) == 3
    assert [message.records for message in Logs().common()] == [3]
    kit.close()


def test_record_is_stored_when_no_further_one_comes(kit, log):
    log.warning("Alone")
    wait_for(lambda: levels() == {"WARNING": 1}, timeout=10)


def test_full_buffer_drops_and_counts(kit, log, no_thread):
    kit.connect(UNREACHABLE)
    for _ in range(Buffer.CAPACITY + 70):
        log.info("More")
    assert not buffer.flush()
    log.info("A batch of 1,000 left room")
    assert counts() == (0, 70, Buffer.CAPACITY + 1)
    kit.connect(kit.server.connection)
    assert buffer.flush(30.0)
    assert levels() == {"INFO": Buffer.CAPACITY + 1, "dropped": 70}


def test_records_wait_for_a_server_that_was_stopped(own_kit, log):
    log.error("Before")
    wait_for(buffer.flush)
    own_kit.server.stop()
    for _ in range(700):
        log.error("Meanwhile")
    wait_for(lambda: buffer._error, timeout=10)
    own_kit.server.start()
    wait_for(lambda: levels() == {"ERROR": 700}, timeout=20)


def test_server_that_freezes_stores_nothing_twice(own_kit, log, no_thread, hasty):
    log.error("Before")
    wait_for(buffer.flush)
    for _ in range(300):
        log.error("Meanwhile")
    own_kit.server.freeze()
    try:
        assert not buffer.flush()
        log.error("After")
    finally:
        own_kit.server.thaw()
    wait_for(buffer.flush)
    assert levels() == {"ERROR": 302}
    assert counts() == (302, 0, 0)


def test_lost_replies_store_nothing_twice(proxy, kit, log, no_thread, hasty):
    kit.connect(proxy.connection)
    log.error("Before")
    wait_for(buffer.flush)
    for _ in range(300):
        log.error("Meanwhile")
    with proxy.fault("drop_replies"):
        assert not buffer.flush()
    wait_for(buffer.flush)
    assert levels() == {"ERROR": 301}
    assert counts() == (301, 0, 0)


def test_full_server_keeps_records_waiting(own_kit, log, no_thread, caplog):
    own_kit.client.config_set("maxmemory-policy", "noeviction")
    own_kit.client.config_set("maxmemory", 1)
    log.error("Order %d", 1)
    assert not buffer.flush()
    assert counts() == (0, 0, 1)
    assert "Can't store log records; up to 10000 wait" in caplog.text
    own_kit.client.config_set("maxmemory", 0)
    assert buffer.flush()
    assert levels() == {"ERROR": 1}
    assert caplog.text.count("stored again") == 1


def test_key_of_another_type_drops_a_batch_and_counts_it(kit, log, no_thread):
    log.error("Order %d", 1)
    buffer.flush()
    (name,) = (name for name in kit.keys() if ":levels:" in name)
    kit.client.rename(name, "aside")
    kit.client.set(name, "x")
    log.error("Order %d", 2)
    assert not buffer.flush()
    assert counts() == (1, 1, 0)
    kit.client.rename("aside", name)
    assert buffer.flush()
    assert levels() == {"ERROR": 1, "dropped": 1}


def test_drop_is_reported_when_no_record_comes(kit, log):
    buffer.drop()
    wait_for(lambda: levels() == {"dropped": 1}, timeout=10)


def test_threads_that_look_at_drops_change_nothing(log, no_thread):
    seen, looks = set(), 2000

    def look():
        seen.update(buffer.dropped() for _ in range(looks))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    buffer.drop()
    for thread in threads:
        thread.join()
    assert seen <= {0, 1}
    assert buffer.dropped() == 1


@pytest.mark.parametrize("begins", [False, True])
def test_interrupted_start_of_the_thread_is_repeated(kit, log, monkeypatch, begins):
    start = threading.Thread.start

    def interrupted(thread):
        monkeypatch.undo()
        if begins:
            start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.error("Before")
    log.error("After")
    wait_for(lambda: levels() == {"ERROR": 2}, timeout=10)
    wait_for(lambda: sum(thread.name == Buffer.name for thread in threading.enumerate()) == 1, timeout=10)


def test_thread_ends_when_it_is_stopped(kit, log):
    log.error("Order %d", 1)
    thread = buffer._thread
    wait_for(lambda: levels() == {"ERROR": 1}, timeout=10)
    buffer.stop()
    thread.join(10)
    assert not thread.is_alive()
    log.error("Order %d", 2)
    wait_for(lambda: levels() == {"ERROR": 2}, timeout=10)


def test_wrong_settings_lose_no_count(kit, log, no_thread):
    kit.options(LOGS={"RECENT": "many"})
    log.error("Order %d", 1)
    assert not buffer.flush()
    assert counts() == (0, 1, 0)


def test_records_of_the_sender_are_not_sent(kit, no_thread, monkeypatch):
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [*root.handlers])
    from redis_kit.logs import RedisHandler

    root.addHandler(RedisHandler())
    monkeypatch.setattr(root, "level", logging.DEBUG)
    kit.connect(UNREACHABLE)
    logging.getLogger("shop").warning("One")
    assert not buffer.flush()  # logs that Redis can't be reached
    assert buffer.waiting() == 1


def test_emit_in_the_handler_of_a_signal_does_not_block(kit, log, no_thread, monkeypatch):
    add = buffer._added

    def interrupted():
        monkeypatch.setattr(buffer, "_added", add)
        log.error("Of the handler")
        add()

    monkeypatch.setattr(buffer, "_added", interrupted)
    log.error("Of the code that it interrupts")
    assert buffer.waiting() == 2


def test_records_of_a_test_are_not_stored_in_the_next(kit, log, no_thread):
    log.error("Order %d", 1)
    LogsComponent().forget()
    assert buffer.flush()
    assert not kit.keys()


PROCESS = """
    import logging, os, sys
    import django
    from django.conf import settings
    handlers = {{"redis": {{"class": "redis_kit.logs.RedisHandler"}}}}
    logs = {{"version": 1, "handlers": handlers, "root": {{"handlers": ["redis"]}}}}
    apps = ["redis_kit"]
    settings.configure(INSTALLED_APPS=apps, SECRET_KEY="x" * 50, USE_TZ=True, REDIS_KIT={kit!r}, LOGGING=logs)
    django.setup()
    log = logging.getLogger("shop")
"""


def run(kit, code):
    source = textwrap.dedent(PROCESS).format(kit=dict(kit.settings.REDIS_KIT)) + textwrap.dedent(code)
    process = start_python(["-c", source], stderr=subprocess.PIPE)
    _, errors = process.communicate(timeout=30)
    return process.returncode, errors


def test_records_are_stored_when_the_process_ends(kit):
    assert run(kit, "[log.error('Last %d', number) for number in range(7)]")[0] == 0
    assert levels() == {"ERROR": 7}


def test_forked_child_stores_its_own_records(kit):
    code = """
    log.error("Of the parent")
    child = os.fork()
    log.error("Of the child") if child == 0 else os.waitpid(child, 0)
    """
    assert run(kit, code)[0] == 0
    assert sorted(record.message for record in Logs().recent()) == ["Of the child", "Of the parent"]


def test_child_of_multiprocessing_stores_its_records(kit):
    code = """
    import multiprocessing
    child = multiprocessing.get_context("fork").Process(target=lambda: (log.error("Of the child"), logging.shutdown()))
    child.start()
    child.join()
    """
    assert run(kit, code)[0] == 0
    assert levels() == {"ERROR": 1}


def test_outage_at_the_end_is_short_and_not_an_error(kit):
    kit.connect(UNREACHABLE)
    code, errors = run(kit, "log.error('Last')")
    assert code == 0
    assert "Traceback" not in errors
