"""A worker whose primary changes: it finds the new one by itself, and what the old one had passed on is done."""

import contextlib
import json
import threading
from urllib.request import urlopen

import pytest

from redis_kit.core.errors import RedisUnavailable
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.features.schedules.store import Schedules
from redis_kit.queues.inspection import list_workers, queue_names
from redis_kit.queues.keys import names_key
from tests.fixtures.groups import Cluster
from tests.fixtures.kit import Kit
from tests.fixtures.process import free_port, wait_for
from tests.queues.support.journal import LASTING
from tests.queues.support.scheduled import declared, due_now, scheduler, states, tick
from tests.queues.support.traffic import Traffic

pytestmark = [pytest.mark.alone(20), pytest.mark.once]

EMPTY = QueueCounts(0, 0, 0, 0)
NOTICED = 1.0  # seconds after which Sentinels and nodes take a primary for dead
WITHIN = 6.0  # seconds from then until all goes on: votes, and the pause of whoever asks again
UNTOLD = 0.5  # seconds: what a primary had not passed on when it died is no older


def test_sentinels_choose_another_primary(sentinel, settings, journal, start_worker):
    with contextlib.closing(Kit(sentinel, settings, patient=False)) as kit:
        kit.options(QUEUES=LASTING)
        worker = start_worker("--threads", 2)
        with Traffic(journal) as traffic:
            traffic.back()
            failing = threading.Thread(target=sentinel.fail_over, kwargs={"crash": True})
            failing.start()
            wait_for(lambda: traffic.errors)
            traffic.forget(UNTOLD)
            assert traffic.stands()
            took = traffic.back(within=15)
            print(f"back {took + 0.7:.2f} s after the primary was killed; {len(traffic.errors)} calls failed")
            assert took <= NOTICED + WITHIN
            failing.join(60)
            traffic.back()
            traffic.settle()
        assert worker.poll() is None


@pytest.fixture
def own_cluster():
    """A Cluster which a test may take apart."""
    nodes = Cluster()
    yield nodes
    nodes.stop()


def test_cluster_that_moves_a_slot_is_down_and_chooses_another_primary(own_cluster, settings, journal, start_worker):
    with contextlib.closing(Kit(own_cluster, settings, patient=False)) as kit:
        kit.options(QUEUES=LASTING)
        worker = start_worker("--threads", 2)
        key = Queue("default").key("ready")
        with Traffic(journal) as traffic:
            traffic.back()
            for _ in range(3):
                target = next(node for node in own_cluster.nodes if node is not own_cluster.owner(key))
                own_cluster.migrate(key, target)
                traffic.back()
            assert not traffic.errors
            others = next(node for node in own_cluster.nodes if node is not own_cluster.owner(key))
            others.freeze()
            wait_for(lambda: any("cluster is down" in str(error).lower() for error in traffic.errors))
            assert traffic.stands()
            others.thaw()
            print(f"whole again: {traffic.back():.2f} s")
            owner = own_cluster.owner(key)
            own_cluster.add_replica(owner)
            owner.stop()
            traffic.forget(UNTOLD)
            assert traffic.stands()
            print(f"another primary: {traffic.back():.2f} s")
            traffic.settle()
        wait_for(lambda: Queue("default").counts() == EMPTY)
        assert worker.poll() is None


def test_other_queues_go_on_while_a_node_of_the_cluster_is_lost(own_cluster, settings, start_worker, shell):
    with contextlib.closing(Kit(own_cluster, settings, patient=False)) as kit:
        kit.options(QUEUES=LASTING | {"HEARTBEAT_INTERVAL": 0.5})
        lost, port = own_cluster.owner(names_key()), free_port()  # the node that has the list of queues
        own_cluster.serve_what_is_left()
        here = "default"  # commands know it from tasks, without the list
        assert own_cluster.owner(Queue(here).key("")) is not lost
        names = [f"queue{number}" for number in range(40)]
        away = next(name for name in names if own_cluster.owner(Queue(name).key("")) is lost)
        worker = start_worker("--queue-name", f"{away},{here}", "--health-port", port)
        wait_for(lambda: queue_names() == [here, away])
        lost.stop()
        wait_for(lambda: f"Queue '{away}' gets no heartbeat" in worker.log.read_text())
        for _ in range(2):
            silent = list_workers([here])[0].silent
            wait_for(lambda silent=silent: list_workers([here])[0].silent < silent)
        with urlopen(f"http://127.0.0.1:{port}/readyz") as response:
            assert json.load(response)["status"] == "ok"
        assert shell("rk_queues", here)[0] == 0
        assert shell("rk_jobs", here)[0] == 0
        code, _said, errors = shell("rk_queues", away)
        assert (code, "1 of 1 queues can't be read" in errors or "can't be reached" in errors) == (69, True)


def test_other_schedules_go_on_while_a_node_of_the_cluster_is_lost(own_cluster, settings):
    with contextlib.closing(Kit(own_cluster, settings, patient=False)) as kit:
        lost = own_cluster.owner(names_key())
        assert own_cluster.owner(Schedules("all").key("due")) is not lost
        own_cluster.serve_what_is_left()
        names = [f"queue{number}" for number in range(40)]
        away = next(name for name in names if own_cluster.owner(Queue(name).key("")) is lost)
        here = next(name for name in names if own_cluster.owner(Queue(name).key("")) is not lost)
        for name in (away, here):
            declared("tests.queues.support.tasks.note", name, every=3600, args=[name], queue=name)
        ticks = scheduler()
        tick(ticks)  # plans the first ones
        for name in (away, here):
            due_now(kit, name)
        lost.stop()
        tick(ticks)
        assert (states()[away].runs, states()[here].runs) == (0, 1)
        assert Queue(here).counts().ready == 1


def test_other_shards_go_on_while_a_node_of_the_cluster_is_lost(own_cluster, settings, journal, start_worker):
    with contextlib.closing(Kit(own_cluster, settings, patient=False)) as kit:
        kit.options(QUEUES={**LASTING, "QUEUE_OPTIONS": {"default": {"SHARDS": 8}}})
        lost = own_cluster.nodes[0]
        replica = own_cluster.add_replica(lost)
        own_cluster.serve_what_is_left()
        away = {name for name in spread().names("default") if own_cluster.owner(Queue(name).key("")) is lost}
        others = set(spread().names("default")) - away
        assert len(away) > 1 < len(others)
        worker = start_worker("--threads", 2)
        with Traffic(journal) as traffic:
            wait_for(lambda: set(spread().names("default")) <= {traffic.shards.get(name) for name in traffic.ended()})
            replica.freeze()  # so that nothing takes the place of the node until the other shards were looked at
            lost.stop()
            wait_for(lambda: len(traffic.errors) > 2)
            took = traffic.back(shards=others)
            assert {type(error) for error in traffic.errors} == {RedisUnavailable}
            assert not away & {traffic.shards[name] for name in list(traffic.sure)[-5:]}
            replica.thaw()
            traffic.forget(UNTOLD, shards=away)
            print(f"a job of another shard: {took:.2f} s; of a lost one: {traffic.back(shards=away):.2f} s")
            traffic.settle()
        wait_for(lambda: Queue("default").counts() == EMPTY)
        assert worker.poll() is None
