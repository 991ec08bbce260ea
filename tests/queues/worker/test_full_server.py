"""A server at ``maxmemory`` with ``noeviction``: it takes no new jobs, and workers end those that it has."""

import contextlib
from contextlib import suppress
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from redis_kit.core.errors import OutOfMemory, RedisUnavailable
from redis_kit.core.panels import Viewer
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.dashboard import queues_page
from redis_kit.queues.dashboard.queues_page import QueuesPanel
from redis_kit.queues.engine import ids
from redis_kit.queues.inspection import list_workers, queue_stats
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.shared.channel import pair
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.supervisor.child import Child, SupervisedQueue
from redis_kit.queues.worker.supervisor.supervisor import Supervisor
from tests.fixtures.process import free_port, wait_for
from tests.queues.support.putting import put
from tests.queues.support.tasks import fail, note, remember

pytestmark = pytest.mark.once

ROOM = 2_000_000  # bytes
LARGE = "x" * 20_000


@pytest.fixture
def queue(own_kit):
    own_kit.options(QUEUES={"DEAD_LIMIT": 5, "HEARTBEAT_INTERVAL": 0.2, "WORKER_TIMEOUT": 4})
    return Queue("default")


@pytest.fixture
def full(own_kit):
    """A function that leaves no room on the server."""

    def fill():
        used = own_kit.client.info("memory")["used_memory"]
        own_kit.client.config_set("maxmemory", used + ROOM)

    return fill


def until_full(add):
    """Add jobs until the server refuses; return what add() returned for each."""
    added = []
    with contextlib.suppress(OutOfMemory):
        for number in range(1000):
            added.append(add(number))
    assert 20 < len(added) < 1000
    return added


def test_new_jobs_are_refused(queue, own_kit, twin):
    own_kit.client.config_set("maxmemory", 1)
    for add in (queue.put, remember.enqueue, remember.using(run_after=timedelta(hours=1)).enqueue):
        with pytest.raises(OutOfMemory, match="maxmemory"):
            twin(add, 1)
    with pytest.raises(OutOfMemory):
        twin(queue.put_many, [1, 2])
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def refuse_as_full(kit):
    kit.client.config_set("maxmemory", 1)


def refuse_as_replica(kit):
    kit.client.replicaof("127.0.0.1", 1)


@pytest.mark.parametrize(("refuse", "reason"), [(refuse_as_full, "OOM "), (refuse_as_replica, "READONLY ")])
def test_refused_writes_are_shown(queue, own_kit, capsys, refuse, reason):
    queue.put(1)
    supervisor = Supervisor(Options(("default",), health_port=free_port()))
    ours, theirs = pair()
    source = SupervisedQueue("default", worker="w", about=ids.information())
    supervisor.children = [Child(0, "w", ours, StatusBoard(1), [source])]
    supervisor._heartbeat.run()
    assert (supervisor._probes.health()["status"], supervisor._probes.health()["refused"]) == ("ok", {})
    call_command("rk_queues")
    assert "refuses" not in capsys.readouterr().out
    refuse(own_kit)
    assert queue_stats(["default"])["default"].refused.startswith(reason)
    with pytest.raises(CommandError, match="refuses writes") as raised:
        call_command("rk_queues")
    assert raised.value.returncode == 69
    assert f"Redis refuses writes to default: {reason}" in capsys.readouterr().out
    (alarm,) = [figure for figure in queues_page.figures(queue_stats(["default"])) if figure.alarm]
    assert (alarm.label, alarm.value, alarm.hint.startswith(reason)) == ("Redis refuses writes", 1, True)
    of_one = QueuesPanel()
    of_one.viewer = Viewer(lambda permission: True, {"queue": "default"})
    assert next(iter(of_one.content())) == alarm
    with suppress(RedisUnavailable):  # of a replica
        supervisor._heartbeat.run()
    health = supervisor._probes.health()
    if refuse is refuse_as_full:
        assert (health["status"], health["refused"]["default"][:4]) == ("degraded", reason)
        assert health["reasons"] == ["the server refuses writes to default"]
    else:  # no lease can be renewed
        assert "read only replica" in health["error"]
        own_kit.client.replicaof("NO", "ONE")
    supervisor.children[0].close()
    theirs.close()
    supervisor._probes.close()


def test_worker_drains_what_is_queued(queue, own_kit, full, journal, start_worker):
    for number in range(10):
        note.using(run_after=timedelta(seconds=1)).enqueue(f"later{number}")
        fail.enqueue(f"failing{number}")
    full()
    names = "tests.queues.support.tasks.note", "tests.queues.support.tasks.remember"
    results = until_full(lambda number: remember.enqueue(LARGE))
    before = int(own_kit.client.config_get("maxmemory")["maxmemory"])
    own_kit.client.config_set("maxmemory", before + len(LARGE))  # what is left is less than that
    put_too = until_full(lambda number: put(queue, f"bare{number}", names[number % 2], [f"bare{number}"]))
    limit = own_kit.client.config_get("maxmemory")["maxmemory"]
    worker = start_worker("--queue-name", "default", "--threads", 4)
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 5), timeout=30)
    assert len(list_workers(["default"])) == 1
    assert len(own_kit.client.keys("*result*")) == len(results) + 20
    for result in results[::10]:
        result.refresh()
        assert result.return_value == LARGE
    used = own_kit.client.info("memory")["used_memory"]
    over = (used - int(limit)) / len(results)
    print(f"{len(results)} + {len(put_too)} jobs; {over:.0f} bytes over the limit per result")
    assert over < 2 * len(LARGE)
    with pytest.raises(OutOfMemory):
        note.enqueue("more")
    own_kit.client.config_set("maxmemory", 0)
    note.enqueue("more")
    wait_for(lambda: "more" in journal.names())
    assert worker.poll() is None


def test_without_stored_results_their_memory_is_free_for_new_jobs(queue, own_kit, full, journal, start_worker):
    full()
    until_full(lambda number: put(queue, f"job{number}", "tests.queues.support.tasks.remember", [LARGE]))
    start_worker("--queue-name", "default", "--threads", 4)
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 0), timeout=30)
    note.enqueue("more")
    wait_for(lambda: "more" in journal.names())
