"""Fixtures of every test: a kit on a real server, sync and async twins, and a count of commands."""

import functools
import gc
from collections.abc import Iterator

import pytest
import redis.utils
from hypothesis import settings

pytest_plugins = [
    "tests.fixtures.lanes",
    "tests.fixtures.database",
    "tests.fixtures.servers",
    "tests.fixtures.brokers",
    "tests.fixtures.projects",
    "tests.fixtures.proxy",
    "tests.fixtures.kit",
    "tests.fixtures.clock",
    "tests.fixtures.dashboard",
]

# While thousands of tests are collected, the garbage collector would look through all of them again and again.
gc.disable()

# For each connection, plain clients of tests read the metadata of redis-py for its version, which takes a millisecond.
redis.utils.get_lib_version = functools.cache(redis.utils.get_lib_version)


def pytest_configure() -> None:
    """Let Hypothesis find wrong answers, and not late ones."""
    settings.register_profile("redis_kit", deadline=None)
    settings.load_profile("redis_kit")


def pytest_collection_finish() -> None:
    """Let the garbage collector work again, seldom, and leave the collected tests out of its rounds."""
    gc.enable()
    gc.set_threshold(10_000)  # new objects, ten times as many as usual; the end of each file collects, too
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Collect garbage after each file, so that a socket or coroutine that it left open fails this file and no other."""
    yield
    gc.collect()
    gc.freeze()  # the next round leaves out modules and other objects that stay, or each would take up to 50 ms
