"""One event loop for a driver that puts jobs one by one."""

import asyncio
from collections.abc import Awaitable
from functools import cache
from typing import Any


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def wait_for(thing: Awaitable[Any]) -> Any:
    """Return the result."""
    return _loop().run_until_complete(thing)
