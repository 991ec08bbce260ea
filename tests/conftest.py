"""Fixtures of every test: a kit on a real server, sync and async twins, and a count of commands."""

import pytest

pytest_plugins = ["tests.fixtures.servers", "tests.fixtures.proxy", "tests.fixtures.kit"]

# Tests that share the site's data folder, or that want the machine for themselves, run one after the other.
TOGETHER = {"example": "demo", "dashboard": "dashboard"}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell pytest-xdist (``-n 2 --dist loadgroup``) which tests must not run beside each other; those begin."""
    for item in items:
        if group := TOGETHER.get(item.path.parent.name):
            item.add_marker(pytest.mark.xdist_group(group))
    order = list(TOGETHER)
    items.sort(key=lambda item: order.index(folder) if (folder := item.path.parent.name) in order else len(order))
