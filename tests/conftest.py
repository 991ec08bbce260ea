"""Fixtures of every test: a kit on a real server, sync and async twins, and a count of commands."""

import os

import pytest

pytest_plugins = [
    "tests.fixtures.servers",
    "tests.fixtures.proxy",
    "tests.fixtures.kit",
    "tests.fixtures.clock",
    "tests.fixtures.dashboard",
]

LANES = 3  # processes for tests marked "alone": most of their time they wait
SECONDS = 10.0  # that a file of such tests takes, unless its mark says more
NICENESS = 3  # of processes that run other tests


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run folders in more processes than there are cores, for tests mostly wait; run named files in this process."""
    if all("::" in argument or argument.endswith(".py") for argument in config.args):
        return 0
    return min(LANES + 2 * (os.cpu_count() or 1) - 1, 12)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files of tests marked ``alone`` into lanes of about the same length, and begin with these."""
    seconds: dict[str, float] = {}
    for item in items:
        if mark := item.get_closest_marker("alone"):
            seconds[_file(item)] = max(seconds.get(_file(item), 0.0), *mark.args, SECONDS)
    lanes, lane_of = [0.0] * LANES, {}
    for file in sorted(seconds, key=lambda file: (-seconds[file], file)):
        lane_of[file] = lanes.index(min(lanes))
        lanes[lane_of[file]] += seconds[file]
    for item in items:
        if item.get_closest_marker("alone"):
            item.add_marker(pytest.mark.xdist_group(f"alone-{lane_of[_file(item)]}"))
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let tests that wait for time limits run before others: those give way to them, and to what they start."""
    if "PYTEST_XDIST_WORKER" in os.environ and not item.get_closest_marker("alone"):
        os.nice(max(0, NICENESS - os.nice(0)))
