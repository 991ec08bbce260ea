"""Each view counts once through all faults; the loop that says so finds a buffer that repeats, and one that drops."""

import pytest

from redis_kit.core import connections
from redis_kit.core.errors import OutOfMemory, RedisUnavailable
from redis_kit.pageviews import batch
from redis_kit.pageviews import buffer as module
from redis_kit.pageviews.buffer import buffer
from tests.chaos.pageviews import faults
from tests.fixtures.proxy import Proxy

SEED, ROUNDS = 11, 40


@pytest.fixture
def faulty_server(kit, own_server, monkeypatch):
    """A proxy before a server of one's own, and its administrator."""
    monkeypatch.setattr(connections, "WORKER", 0.3)
    monkeypatch.setattr(buffer, "_start", lambda: None)
    buffer.reset()  # it counts what any test before this one dropped
    proxy = Proxy(own_server.port)
    with own_server.client() as admin:
        faults.prepare(admin)
        kit.connect(faults.connection(proxy.port))
        yield proxy, admin
    proxy.stop()


def test_each_view_counts_once_through_all_faults(faulty_server):
    recorded, met, wrong = faults.inject(*faulty_server, ROUNDS, SEED)
    assert wrong == {}
    assert recorded > 1000
    assert len(met) > 12


def test_loop_finds_batches_that_are_not_known_again(faulty_server, monkeypatch):
    made = batch.ViewBatch.__init__
    monkeypatch.setattr(
        batch.ViewBatch, "__init__", lambda self, *args, **options: made(self, *args, **options | {"number": 0})
    )
    _, _, wrong = faults.inject(*faulty_server, ROUNDS, SEED)
    counted, expected = wrong["all"]
    assert counted > expected


def test_loop_finds_views_that_are_dropped_where_access_is_denied(faulty_server, monkeypatch):
    for one in (module, batch):
        monkeypatch.setattr(one, "TEMPORARY", (RedisUnavailable, OutOfMemory))
    _, _, wrong = faults.inject(*faulty_server, ROUNDS, SEED)
    counted, expected = wrong["all"]
    assert counted < expected
