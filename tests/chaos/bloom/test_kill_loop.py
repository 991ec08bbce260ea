"""No value is forgotten; the loop that says so finds a rebuild that does not get the adds of others."""

import pytest

from redis_kit.bloom.filter import BloomFilter
from tests.chaos.bloom import kill_loop
from tests.fixtures.kit import Kit

VALUES, SEED = 15_000, 7


@pytest.fixture
def server(settings, tmp_path):
    server = kill_loop.durable(tmp_path / "data")
    kit = Kit(server, settings)
    yield server
    kit.close()
    server.stop()


def test_no_value_is_forgotten(server):
    kills, restarts, rebuilds, lost = kill_loop.run(server, VALUES, SEED, pause=0.1)
    assert lost == []
    assert kills + restarts > 1
    assert rebuilds


@pytest.mark.seeded
def test_loop_finds_adds_that_a_rebuild_does_not_get(server, monkeypatch):
    rebuild = BloomFilter.rebuild

    def too_early(self, values):
        return rebuild(self, list(values)[:-2000])

    monkeypatch.setattr(BloomFilter, "rebuild", too_early)
    assert kill_loop.run(server, VALUES, SEED, pause=0.1)[3]
