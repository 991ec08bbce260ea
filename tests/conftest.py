"""Fixtures of every test: a kit on a real server, sync and async twins, and a count of commands."""

pytest_plugins = [
    "tests.fixtures.lanes",
    "tests.fixtures.servers",
    "tests.fixtures.proxy",
    "tests.fixtures.kit",
    "tests.fixtures.clock",
    "tests.fixtures.dashboard",
]
