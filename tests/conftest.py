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


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run folders in more processes than there are cores, for tests mostly wait; run named files in this process."""
    if all("::" in argument or argument.endswith(".py") for argument in config.args):
        return 0
    return min(2 * (os.cpu_count() or 1), 8)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file marked ``alone`` in one process, and begin with the groups, which take longest."""
    for item in items:
        if item.get_closest_marker("alone"):
            item.add_marker(pytest.mark.xdist_group(item.path.name))
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
