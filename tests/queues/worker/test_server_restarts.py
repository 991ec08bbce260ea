"""A worker whose server dies and comes back: with its data, with some of them, without, and not at once."""

import contextlib
import os
import resource
import threading
import time
from pathlib import Path

import pytest
import redis

from redis_kit.core.embedded import server as embedded
from redis_kit.core.embedded.server import find_binary
from redis_kit.core.errors import RedisUnavailable
from redis_kit.queues import Queue, QueueCounts
from tests.fixtures.kit import Kit
from tests.fixtures.process import wait_for
from tests.queues.support.journal import LASTING
from tests.queues.support.tasks import wait_for_file
from tests.queues.support.traffic import Traffic

pytestmark = [pytest.mark.alone, pytest.mark.once]

EMPTY = QueueCounts(0, 0, 0, 0)
WITHIN = 4.0  # seconds: a breaker asks each second, a worker at least each 2 s
AWAY = 3.0
SHARE = 0.04  # of a processor, for an idle worker that waits for its server
# "always", as what the server answered is on the disk then, also where that is slow.
ARGUMENTS = ("--appendfsync", "always", "--loading-process-events-interval-bytes", "1024")


@pytest.fixture
def kit_on(settings):
    """A function that returns the kit on a server."""
    with contextlib.ExitStack() as stack:

        def make(server):
            kit = stack.enter_context(contextlib.closing(Kit(server, settings, patient=False)))
            kit.options(QUEUES=LASTING)
            return kit

        yield make


def loads(server):
    """Say whether a server answers that it has yet to read its data."""
    with server.client() as client, contextlib.suppress(redis.ConnectionError):
        try:
            client.ping()
        except redis.exceptions.BusyLoadingError:
            return True
    return False


def seconds_of(pid):
    """Return the processor time of a process and of all below it."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") + sum(map(seconds_of, below))


def test_killed_server_comes_back_with_all_that_it_promised(make_server, kit_on, journal, start_worker, tmp_path):
    server = make_server(tcp=True, persistence=True, data_dir=tmp_path / "data", extra_args=ARGUMENTS)
    kit_on(server).options(QUEUES={"HEARTBEAT_INTERVAL": 0.3, "WORKER_TIMEOUT": AWAY / 2})
    worker, other = start_worker("--threads", 2), start_worker("--processes", 2, "--threads", 2)
    with Traffic(journal) as traffic:
        for _ in range(2):
            traffic.back()
            time.sleep(0.2)
            server.restart()
            print(f"back after {(took := traffic.back()):.2f} s")
            assert took <= WITHIN
        wait_for_file.enqueue("long", str(tmp_path / "go"))
        wait_for(lambda: journal.lines(name="long"))
        server.stop()
        used = seconds_of(worker.pid)
        assert traffic.stands()
        time.sleep(AWAY)
        used = seconds_of(worker.pid) - used
        server.start()
        took = traffic.back()
        (tmp_path / "go").touch()
        print(f"back after {took:.2f} s, {used / AWAY:.1%} of a processor while the server was away")
        assert took <= WITHIN
        assert used <= SHARE * AWAY + 0.03  # the clock of processes ticks each 10 ms
        wait_for(lambda: journal.lines(name="long", step="end"))
        traffic.settle(beside={"long"})
    wait_for(lambda: Queue("default").counts() == EMPTY)
    # All leases ended meanwhile, though nobody had died.
    assert len(journal.lines(name="long", step="begin")) == 1
    assert worker.poll() is other.poll() is None


def test_server_that_still_loads_is_waited_for(make_server, kit_on, journal, start_worker, tmp_path, monkeypatch):
    monkeypatch.setattr(embedded, "START_LIMIT", 40.0)
    server = make_server(tcp=True, persistence=True, data_dir=tmp_path / "data", extra_args=ARGUMENTS)
    kit = kit_on(server)
    with kit.client.pipeline(transaction=False) as pipeline:
        for number in range(6_000):
            pipeline.set(f"other{number}", "x")
        pipeline.execute()
    worker = start_worker("--threads", 2)
    with Traffic(journal) as traffic:
        traffic.back()
        server.embedded.extra_args += ("--key-load-delay", "800")  # us a key; many short ones stretch on a busy machine
        restarting = threading.Thread(target=server.restart)
        restarting.start()
        wait_for(lambda: loads(server))
        assert traffic.stands()
        restarting.join(40)
        took = traffic.back()
        print(f"back after {took:.2f} s; {len(traffic.errors)} calls failed")
        assert took <= WITHIN
        traffic.settle()
    assert worker.poll() is None


def test_server_that_lost_everything_gets_new_jobs_done(own_server, kit_on, journal, start_worker):
    kit_on(own_server)
    worker = start_worker("--threads", 2)
    with Traffic(journal) as traffic:
        traffic.back()
        own_server.stop()
        traffic.forget()
        own_server.start()
        assert traffic.back() <= WITHIN
        traffic.settle()
    wait_for(lambda: Queue("default").counts() == EMPTY)
    assert worker.poll() is None
    wait_for(lambda: worker.log.read_bytes().count(b"The server has lost its data") == 1)


def test_server_whose_disk_is_full_keeps_what_it_promised(make_server, kit_on, journal, start_worker, tmp_path):
    wrapper = tmp_path / "server"
    # A write that fails is no reason to die.
    wrapper.write_text(f"#!/bin/sh\ntrap '' XFSZ\nexec {find_binary()} \"$@\"\n")
    wrapper.chmod(0o700)
    server = make_server(tcp=True, persistence=True, data_dir=tmp_path / "data", binary=wrapper)
    kit = kit_on(server)
    worker = start_worker("--threads", 2)
    with Traffic(journal) as traffic:
        traffic.back()
        before = resource.prlimit(server.embedded.pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        wait_for(lambda: any("MISCONF" in str(error) for error in traffic.errors))
        assert traffic.stands()
        with pytest.raises(RedisUnavailable):
            Queue("default").put(1)
        resource.prlimit(server.embedded.pid, resource.RLIMIT_FSIZE, before)
        assert traffic.back() <= WITHIN
        assert kit.client.waitaof(1, 0, 5000)[0] == 1
        server.restart()
        assert traffic.back() <= WITHIN
        traffic.settle()
    wait_for(lambda: Queue("default").counts() == EMPTY)
    assert worker.poll() is None
