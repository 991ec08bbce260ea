"""A mixin for test cases, where the project can't change ``TEST_RUNNER``."""

import unittest
from typing import Any

from redis_kit.testing.isolation import isolation


class RedisKitTestMixin(unittest.TestCase):
    """Tests on the server for tests, each under its own prefix of keys. To be named before Django's class:

    .. code-block:: python

        class OrderTests(RedisKitTestMixin, TestCase):
            ...

    The keys that ``setUpTestData()`` writes are there in the first test of the class only.
    """

    @classmethod
    def setUpClass(cls) -> None:
        """Start the server for tests before the data of the class are made."""
        isolation.start()
        cls.addClassCleanup(isolation.stop)
        super().setUpClass()

    def run(self, result: Any = None) -> Any:
        """Run one test, and forget what it left in the memory of this process."""
        try:
            return super().run(result)
        finally:
            isolation.renew()
