"""Fixtures of every test: a kit on a real server, sync and async twins, and a count of commands."""

import pytest

pytest_plugins = ["tests.fixtures.servers", "tests.fixtures.proxy", "tests.fixtures.kit", "tests.fixtures.clock"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell pytest-xdist (``-n 2 --dist loadgroup``) to run no two tests marked ``alone`` at once; groups begin."""
    for item in items:
        if item.get_closest_marker("alone"):
            item.add_marker(pytest.mark.xdist_group("alone"))
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
