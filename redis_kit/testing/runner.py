"""A test runner for ``manage.py test``: no test touches the project's Redis, or sees another test's keys.

.. code-block:: python

    TEST_RUNNER = "redis_kit.testing.runner.RedisKitRunner"
"""

import unittest
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError
from django.test.runner import DiscoverRunner, ParallelTestSuite
from django.test.runner import _init_worker as init_django_worker  # type: ignore[attr-defined]

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.testing.isolation import isolation

_run: Callable[..., Any] = unittest.TestCase.run


def _run_isolated(test: unittest.TestCase, result: Any = None) -> Any:
    try:
        return _run(test, result)
    finally:
        isolation.renew()


def _init_worker(*args: Any, **kwargs: Any) -> None:
    init_django_worker(*args, **kwargs)
    unittest.TestCase.run = _run_isolated  # type: ignore[method-assign, assignment]
    isolation.enter_worker()


class IsolatedParallelTestSuite(ParallelTestSuite):
    """Tests in several processes, each with its own prefixes."""

    init_worker = _init_worker


class RedisKitRunner(DiscoverRunner):
    """Django's runner with a server for tests in place of those in ``REDIS_KIT["CONNECTIONS"]``.

    A project with a runner of its own derives from both: ``class Runner(RedisKitRunner, OtherRunner)``.
    """

    parallel_test_suite = IsolatedParallelTestSuite

    def setup_test_environment(self, **kwargs: Any) -> None:
        """Start the server for tests before a test module is imported. Raises CommandError if there is none."""
        super().setup_test_environment(**kwargs)
        conf.warn_unless_installed()
        try:
            isolation.start()
        except ConfigurationError as error:
            raise CommandError(str(error)) from error  # shown without a traceback
        # Every test runs through this method, with any class of results, and in other processes too.
        unittest.TestCase.run = _run_isolated  # type: ignore[method-assign, assignment]

    def teardown_test_environment(self, **kwargs: Any) -> None:
        """Remove the keys of the tests, and stop the server."""
        unittest.TestCase.run = _run  # type: ignore[method-assign]
        try:
            isolation.stop()
        finally:
            super().teardown_test_environment(**kwargs)
