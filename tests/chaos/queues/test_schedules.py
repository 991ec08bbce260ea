"""Each tick is added once and runs, and no policy is broken, while workers and the server are killed."""

import pytest

from tests.chaos.queues import schedules
from tests.chaos.queues.schedules import TASK, Case, Plan
from tests.queues.support.journal import Journal

pytestmark = [pytest.mark.alone(60), pytest.mark.once]


def test_each_tick_runs_once_while_workers_and_the_server_are_killed():
    outcome = schedules.run(Plan(24, workers=3, schedules=6, every=0.5, kills=2))
    outcome.check()
    assert len(outcome.facts["case"].steps) >= 24


@pytest.fixture
def case(tmp_path):
    """A run without violations: two schedules with three ticks each."""
    plan = Plan(6, schedules=2, every=10)
    journal = Journal(tmp_path / "journal")
    journal.path.write_text("x begin 1 1000000000.0\nx begin 1 1000000040.0\n")
    ticks = schedules._ticks(plan, journal)
    by_name = {}
    for id, (chosen, tick) in ticks.items():
        by_name.setdefault(chosen.name, []).append((tick / 1000, id))
    steps = {
        id: {"added": [at + 0.01], "began": [at + 0.02], "ended": [at + 1]}
        for each in by_name.values()
        for at, id in sorted(each)[:3]
    }
    return Case(plan, ticks, steps, [])


def ids(case, name):
    found = [(tick, id) for id, (chosen, tick) in case.ticks.items() if chosen.name == name and id in case.steps]
    return [id for _, id in sorted(found)]


def test_checker_accepts_a_right_history(case):
    assert case.outcome().violations == []
    assert all(9 < late < 11 for late in case.lateness())
    assert TASK in {chosen.task for chosen, _ in case.ticks.values()}


def test_checker_finds_each_kind_of_violation(case):
    first, second, third = ids(case, "allow0")
    case.steps[first]["added"].append(case.steps[first]["added"][0] + 5)
    del case.steps[second]
    case.steps[third]["ended"] = []
    before, after, _ = ids(case, "skip1")
    case.steps[before]["ended"].append(case.steps[after]["began"][0] + 1)
    found = "\n".join(case.outcome().violations)
    assert "was added 2 times" in found
    assert "never ran" in found
    assert "has not ended" in found
    assert "began before skip1" in found
