"""A pytest plugin for projects: one real server per session, a key prefix per test, and a function that runs jobs.

pytest loads it if redis_kit is installed. It does nothing until a test uses one of its fixtures.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

URL_VARIABLE = "REDIS_KIT_TEST_URL"


class RedisKit:
    """The set-up of one test: ``url`` of the server, ``prefix`` of the keys."""

    def __init__(self, url: str, settings: Any) -> None:
        self.url, self.prefix = url, f"test-{secrets.token_hex(6)}"
        given = getattr(settings, "REDIS_KIT", None) or {}
        aliases = given.get("CONNECTIONS") or {"default": {}}
        connections = {alias: {"URL": url} for alias in aliases}
        settings.REDIS_KIT = {**given, "PREFIX": self.prefix, "CONNECTIONS": connections}

    def remove_keys(self) -> None:
        """Delete the keys of this test, and no others."""
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
    """Return ``REDIS_KIT_TEST_URL``, or the URL of an embedded server that stops with the session."""
    if url := os.environ.get(URL_VARIABLE):
        yield url
        return
    from redis_kit.core.embedded.server import EmbeddedServer

    with EmbeddedServer() as server:
        yield server.url


@pytest.fixture
def redis_kit(redis_kit_server: str, settings: Any) -> Iterator[RedisKit]:
    """Connect every alias of ``REDIS_KIT`` to the test server, with a key prefix for this test."""
    kit = RedisKit(redis_kit_server, settings)
    yield kit
    kit.remove_keys()


@pytest.fixture
def run_jobs(redis_kit: RedisKit) -> Callable[..., int]:
    """Return a function that runs the ready jobs of some queues in this thread: ``run_jobs("mail")``.

    It returns the number of jobs. A failed job is retried or dead, as in a worker; delayed jobs stay.
    """
    from redis_kit.testing.jobs import drain

    return drain
