"""Exactness when many processes and tasks ask at once."""

import pytest

from redis_kit.throttling import Throttle
from tests.chaos.throttling.support.processes import ask_from_processes, throttles

pytestmark = pytest.mark.once
PROCESSES, LIMIT = 8, 100
RATES = [(LIMIT, 86_400 * 300), (1000, 86_400 * 365)]  # so slow that nothing runs out while they race


@pytest.mark.parametrize("tasks", [0, 10], ids=["sync", "async"])
def test_eight_processes_together_get_exactly_the_limit(kit, tasks):
    asked = throttles(RATES)
    found, missed = ask_from_processes(
        kit.settings.REDIS_KIT, asked, processes=PROCESSES, decisions=40 * len(asked), tasks=tasks
    )
    assert missed == 0
    assert [len(stamps) for stamps in found.values()] == [LIMIT] * 5
    for one in asked:
        assert Throttle(**one).peek("joe").remaining == 0


@pytest.mark.parametrize("tasks", [0, 10], ids=["sync", "async"])
def test_throttles_that_decide_together_count_what_all_of_them_admit(kit, tasks):
    smallest = {"name": "small", "rates": RATES, "strategy": "sliding_log"}
    larger = throttles([(250, 86_400 * 300)])
    asked = [larger[0], larger[1], smallest, *larger[2:]]
    found, missed = ask_from_processes(
        kit.settings.REDIS_KIT, asked, processes=PROCESSES, decisions=40, tasks=tasks, together=True
    )
    assert missed == 0
    assert [len(stamps) for stamps in found.values()] == [LIMIT] * 6
    assert Throttle(**smallest).peek("joe").remaining == 0
    assert [Throttle(**one).peek("joe").remaining for one in larger] == [150] * 5
