"""A worker that the server lets in no more, or not yet: it waits, says so in one line, and ends in order."""

import contextlib
import shutil
import time
from pathlib import Path

import pytest

from redis_kit.locks import Lock
from redis_kit.queues import Queue, QueueCounts
from tests.fixtures.kit import Kit
from tests.fixtures.process import client, wait_for
from tests.queues.support.journal import QUICK
from tests.queues.support.processes import stopped
from tests.queues.support.tasks import note, take_lock, wait_for_file

pytestmark = pytest.mark.alone(20)
PASSWORD = "of the server"
SAID = "Redis refuses the worker's credentials; retrying: Redis refused access"
WRONG = ("Traceback", "can't be read", "failed", "Lost connection", "ended by", "gets no heartbeat", "restarting it")


@pytest.fixture(params=["valkey", "debian"])
def own(request, make_server, settings):
    """The kit on a server of its own, whose clients may be closed."""
    binary = shutil.which("redis-server")
    server = make_server(tcp=True, **({"binary": Path(binary)} if request.param == "debian" and binary else {}))
    with contextlib.closing(Kit(server, settings)) as kit:
        kit.options(QUEUES=QUICK)
        yield kit


@contextlib.contextmanager
def administrator(kit):
    with kit.server.client() as before, client(kit.url, password=PASSWORD) as admin:
        before.config_set("requirepass", PASSWORD)
        yield admin


def drop(admin):
    admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def checked(text):
    assert text.count(SAID) == 1
    assert [wrong for wrong in WRONG if wrong in text] == []


def test_worker_without_the_password_says_one_line_and_ends_in_order(own, start_worker):
    with administrator(own):
        process = start_worker("--processes", 2, "--threads", 2, "--queue-name", "default,mail")
        wait_for(lambda: SAID in process.log.read_text())
        time.sleep(3)  # beats, claims and listeners come again
        stopped(process, within=15)
    text = process.log.read_text()
    checked(text)
    assert "Reconnected to Redis" not in text


def test_worker_outlasts_a_password_that_is_turned_on_and_off(own, start_worker, journal, tmp_path):
    process = start_worker("--threads", 2)
    wait_for_file.enqueue("long", str(tmp_path / "go"))
    wait_for(lambda: journal.lines(name="long", step="begin"))
    with administrator(own) as admin:
        drop(admin)
        wait_for(lambda: SAID in process.log.read_text())
        (tmp_path / "go").touch()
        wait_for(lambda: journal.lines(name="long", step="end"))
        time.sleep(1)
        assert "Reconnected to Redis" not in process.log.read_text()
        admin.config_set("requirepass", "")
    wait_for(lambda: "Reconnected to Redis." in process.log.read_text())
    note.enqueue("after")
    wait_for(lambda: Queue("default").counts() == QueueCounts(0, 0, 0, 0))
    stopped(process, within=15)
    assert len(journal.lines(name="long", step="begin")) == 1
    text = process.log.read_text().replace("Lost connection to Redis; retrying", "")  # of the closed connections
    checked(text)


def test_pools_of_a_worker_have_a_connection_for_each_thread(kit, start_worker, journal):
    kit.options(QUEUES=QUICK, MAX_CONNECTIONS=2)
    process = start_worker("--threads", 7)
    kit.options(MAX_CONNECTIONS=50)
    leases = [Lock(f"lock{number}", timeout=60).acquire() for number in range(6)]
    for number in range(6):
        take_lock.enqueue(f"lock{number}")
    wait_for(lambda: sum("b" in one["flags"] for one in kit.client.client_list()) >= 7)
    for lease in leases:
        lease.release()
    wait_for(lambda: Queue("default").counts() == QueueCounts(0, 0, 0, 0))
    assert [len(journal.lines(name=f"lock{number}", step="begin")) for number in range(6)] == [1] * 6
    assert "connections of this process" not in process.log.read_text()
