"""Pages on a server that is a hundredth full: their round trips and their size."""

import pytest

from redis_kit.queues.tasks import registry
from tests.chaos.dashboard import page_load

pytestmark = pytest.mark.once


def test_pages_of_a_full_server_are_small_and_take_few_round_trips(kit, boss, monkeypatch):
    monkeypatch.setattr(registry, "sinks", {})
    kit.options(**page_load.OPTIONS)
    monkeypatch.setattr(page_load, "ROUNDS", 1)
    page_load.fill(0.01)
    costs = page_load.measure_all(boss, kit.client)
    # The overview is made of the summaries of all pages.
    missed = {url: cost.misses for url, cost in costs.items() if url and {"round trips", "kB"} & {*cost.misses}}
    assert missed == {}
    assert costs[""].size < page_load.GOALS["kB"]
    page_load.held.clear()
