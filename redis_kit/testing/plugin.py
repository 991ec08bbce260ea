"""A pytest plugin for projects that use the kit: one real server per session, a key prefix per test, and a job drain.

It is active wherever the kit is installed and does nothing until a test asks for one of its fixtures.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

URL_VARIABLE = "REDIS_KIT_TEST_URL"


class RedisKit:
    """The kit of one test: ``url`` of the server, ``prefix`` of this test's keys."""

    def __init__(self, url: str, settings: Any) -> None:
        self.url, self.prefix = url, f"test-{secrets.token_hex(6)}"
        given = getattr(settings, "REDIS_KIT", None) or {}
        aliases = given.get("CONNECTIONS") or {"default": {}}
        connections = {alias: {"URL": url} for alias in aliases}
        settings.REDIS_KIT = {**given, "PREFIX": self.prefix, "CONNECTIONS": connections}

    def remove_keys(self) -> None:
        """Delete what this test stored, and nothing else."""
        from redis_kit.core import connections

        client, cursor = connections.client(profile="worker"), b"0"
        while True:
            cursor, keys = client.call("SCAN", cursor, "MATCH", f"{self.prefix}:*", "COUNT", 1000)
            if keys:
                client.call("UNLINK", *keys)
            if cursor == b"0":
                return


@pytest.fixture(scope="session")
def redis_kit_server() -> Iterator[str]:
    """Return the URL of a server: that of ``REDIS_KIT_TEST_URL``, else an embedded one that ends with the session."""
    if url := os.environ.get(URL_VARIABLE):
        yield url
        return
    from redis_kit.core.embedded.server import EmbeddedServer

    with EmbeddedServer() as server:
        yield server.url


@pytest.fixture
def redis_kit(redis_kit_server: str, settings: Any) -> Iterator[RedisKit]:
    """Point every connection of ``REDIS_KIT`` at the test server, under a prefix of this test's own."""
    found = RedisKit(redis_kit_server, settings)
    yield found
    found.remove_keys()


@pytest.fixture
def run_jobs(redis_kit: RedisKit) -> Callable[..., int]:
    """Return a function that runs the ready jobs of some queues in this thread: ``run_jobs("mail")``.

    It returns how many it ran. A job that fails is retried or buried as a worker would do it; delayed jobs stay.
    """
    from redis_kit.testing.jobs import drain

    return drain
