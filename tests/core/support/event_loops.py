"""Thousands of event loops, one after another: they leave neither memory nor descriptors behind.

``python -m tests.core.support.event_loops redis://... 5000`` runs that many of each kind and prints what is left of
them. The exit code is 1 if anything grew. With ``kept`` at the end it plants an old fault, a mapping that keeps every
loop's client.
"""

import asyncio
import gc
import json
import os
import sys
from pathlib import Path

from asgiref.sync import async_to_sync

MEMORY = 2_000_000  # bytes that the second half of the loops may take: the allocator's own ups and downs
DESCRIPTORS = 2  # of the last loop that was closed without closing its generators
KINDS = ("run", "async_to_sync", "closed", "dropped")


async def use():
    """Use the async client as a view does."""
    from redis_kit.core import connections

    assert await connections.aclient().call("PING") == b"PONG"


def run_one(kind):
    """Run one event loop."""
    if kind == "run":
        asyncio.run(use())
    elif kind == "async_to_sync":
        async_to_sync(use)()
    else:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(use())
        if kind == "closed":
            loop.close()


def descriptors():
    """Return how many descriptors are open, but for the one that counts them."""
    return len(list(Path("/proc/self/fd").iterdir())) - 1


def left():
    """Return what there is in this process: loops and clients, descriptors, bytes of memory."""
    from redis_kit.core.client.single import AsyncClient

    gc.collect()
    kinds = (asyncio.BaseEventLoop, AsyncClient)
    objects = [sum(isinstance(one, kind) for one in gc.get_objects()) for kind in kinds]
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "loops": objects[0],
        "clients": objects[1],
        "descriptors": descriptors(),
        "memory": pages * os.sysconf("SC_PAGE_SIZE"),
    }


def run(count):
    """Return by kind of loop how much the second half of them left behind."""
    grown = {}
    for kind in KINDS:
        most = 0
        for _ in range(count // 2):
            run_one(kind)
        before = left()
        for number in range(count // 2):
            run_one(kind)
            if number % 50 == 0:
                most = max(most, descriptors() - before["descriptors"])
        after = left()
        grown[kind] = {name: after[name] - before[name] for name in after} | {"descriptors at most": most}
    return grown


def plant():
    """Keep the clients of every loop, as a mapping with weak keys does whose values refer to them."""
    from redis_kit.core import connections

    kept, held = [], connections._LoopClients.__init__

    def keep(self):
        held(self)
        kept.append((self, asyncio.get_running_loop()))

    connections._LoopClients.__init__ = keep


def main(url, count, *planted):
    """Run it, print the figures, and return the exit code."""
    import warnings

    from django.conf import settings

    warnings.simplefilter("ignore", ResourceWarning)  # "closed" and "dropped" are what they warn of
    settings.configure(
        SECRET_KEY="only-for-tests-and-as-long-as-a-real-one-is",
        REDIS_KIT={"CONNECTIONS": {"default": {"URL": url}}, "CONNECT_TIMEOUT": 2, "READ_TIMEOUT": 2},
    )
    if planted:
        plant()
    grown = run(count)
    print(json.dumps(grown))
    return int(
        any(
            one["loops"] > 1 or one["clients"] > 1 or one["descriptors"] > DESCRIPTORS or one["memory"] > MEMORY
            for one in grown.values()
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2].replace("_", "")), *sys.argv[3:]))
