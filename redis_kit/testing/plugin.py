"""A pytest plugin for projects: one real server per session, a key prefix per test, and a function that runs jobs.

pytest loads it if redis_kit is installed. It does nothing until a test uses one of its fixtures.
"""

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest


class RedisKit(NamedTuple):
    """The set-up of one test: ``url`` of the server of the connection ``default``, ``prefix`` of the keys."""

    url: str
    prefix: str


@pytest.fixture(scope="session")
def redis_kit_server() -> Iterator[str]:
    """Return ``REDIS_KIT_TEST_URL``, or the URL of an embedded server that stops with the session."""
    from redis_kit.testing.isolation import URL_VARIABLE, start_server

    if url := os.environ.get(URL_VARIABLE):
        yield url
        return
    with start_server() as server:
        yield server.url


@pytest.fixture
def redis_kit(request: pytest.FixtureRequest) -> Iterator[RedisKit]:
    """Connect every alias of ``REDIS_KIT`` to the test server, with a key prefix for this test.

    A connection with the option ``TEST`` leads where that says.
    """
    from redis_kit.core.client.addresses import address
    from redis_kit.testing.isolation import isolation

    isolation.start(lambda: str(request.getfixturevalue("redis_kit_server")))
    try:
        yield RedisKit(address("default").url, isolation.prefix)
    finally:
        isolation.stop()


@pytest.fixture
def run_jobs(redis_kit: RedisKit) -> Callable[..., int]:
    """Return a function that runs the ready jobs of some queues in this thread: ``run_jobs("mail")``.

    It returns the number of jobs. Without a name it runs those of the queue ``default``. A failed job is retried or
    dead, as in a worker; delayed jobs stay. It is ``redis_kit.testing.jobs.drain()``.
    """
    from redis_kit.testing.jobs import drain

    return drain
