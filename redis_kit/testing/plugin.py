"""A pytest plugin for projects: one real server per session, a key prefix per test, and a function that runs jobs.

pytest loads it if redis_kit is installed. If ``TEST_RUNNER`` is RedisKitRunner or derived from it, all tests use the
server for tests, as with ``manage.py test``; else those that use one of the fixtures. The first use starts the server.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest


class RedisKit(NamedTuple):
    """The set-up of one test: ``url`` of the server of the connection ``default``, ``prefix`` of the keys."""

    url: str
    prefix: str


_all_tests = pytest.StashKey[bool]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Lead all connections to the server for tests if ``TEST_RUNNER`` does so."""
    config = session.config
    is_xdist_controller = config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")
    if _has_runner() and not is_xdist_controller:
        from redis_kit.core.errors import ConfigurationError
        from redis_kit.testing.isolation import isolation

        try:
            isolation.start(lazy=True)
        except ConfigurationError as error:
            raise pytest.UsageError(str(error)) from error
        config.stash[_all_tests] = True


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Begin the next test with its own keys."""
    yield
    if item.config.stash.get(_all_tests, False):
        from redis_kit.testing.isolation import isolation

        isolation.renew(if_used=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove the keys of the tests, and stop the server."""
    if session.config.stash.get(_all_tests, False):
        from redis_kit.testing.isolation import isolation

        session.config.stash[_all_tests] = False
        isolation.stop()


def _has_runner() -> bool:
    """Return whether Django is set up, as by pytest-django, and ``TEST_RUNNER`` is ours or derived from it.

    Raises UsageError for a path of redis_kit that does not exist.
    """
    modules = [sys.modules.get(name) for name in ("django.conf", "django.apps")]
    if not all(modules):
        return False
    from django.apps import apps
    from django.conf import global_settings, settings
    from django.utils.module_loading import import_string

    if not (settings.configured and apps.ready) or settings.TEST_RUNNER == global_settings.TEST_RUNNER:
        return False
    from redis_kit.core.checks.configuration import path_problems

    for problem in path_problems("TEST_RUNNER"):
        raise pytest.UsageError(problem.text)
    with suppress(ImportError):  # pytest does not need the runner
        from redis_kit.testing.runner import RedisKitRunner

        runner = import_string(settings.TEST_RUNNER)
        return isinstance(runner, type) and issubclass(runner, RedisKitRunner)
    return False


@pytest.fixture(scope="session")
def redis_kit_server(pytestconfig: pytest.Config) -> Iterator[str]:
    """Return ``REDIS_KIT_TEST_URL``, or the URL of an embedded server that stops with the session."""
    from redis_kit.testing.isolation import isolation, start_server, url_of_environment

    if pytestconfig.stash.get(_all_tests, False):
        yield isolation.url
        return
    if url := url_of_environment():
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
    dead, as in a worker; with ``raise_errors=True`` its error is raised. Delayed jobs stay. It is
    ``redis_kit.testing.jobs.drain()``.
    """
    from redis_kit.testing.jobs import drain

    return drain
