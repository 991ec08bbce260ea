"""What tests of leases look at."""

import asyncio
from time import monotonic

from tests.fixtures.servers import wait_for


def holder(kit, name="a"):
    """Return the key of a lock that is held."""
    (key,) = [key for key in kit.keys() if key.endswith(f"lock:{name}:holder")]
    return key


def passed(seconds, *, since=None):
    """Wait until so many seconds have passed."""
    end = (since or monotonic()) + seconds
    wait_for(lambda: monotonic() > end)


async def told(condition):
    """Wait without blocking the event loop."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 -- what sets it is another thread
            await asyncio.sleep(0.005)


def tickets(kit):
    return [one for key in kit.keys() if key.endswith(":queue") for one in kit.client.zrange(key, 0, -1)]


def key_ending(kit, part):
    (found,) = [key for key in sorted(kit.keys()) if key.endswith(part)]
    return found
