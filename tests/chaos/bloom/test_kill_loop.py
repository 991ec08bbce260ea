"""No value is forgotten; the loop that says so finds a rebuild that does not get the adds of others."""

import pytest

from redis_kit.bloom.filter import BloomFilter
from tests.chaos.bloom import kill_loop

PLAN = kill_loop.Plan(15_000, pause=0.1, seed=7)


def test_no_value_is_forgotten():
    outcome = kill_loop.run(PLAN)
    outcome.check()
    assert outcome.facts["faults"] >= 1
    assert outcome.facts["rebuilds"]


@pytest.mark.seeded
def test_loop_finds_adds_that_a_rebuild_does_not_get(monkeypatch):
    rebuild = BloomFilter.rebuild

    def too_early(self, values):
        return rebuild(self, list(values)[:-2000])

    monkeypatch.setattr(BloomFilter, "rebuild", too_early)
    assert kill_loop.run(PLAN).found["lost"]
