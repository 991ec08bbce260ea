"""One round trip: the kit's client and flows beside redis-py's own client."""

import asyncio
import contextlib
import time

from django.conf import settings
from django.test.utils import override_settings

from benchmarks.support.measurement import compare, site
from redis_kit.core import connections, flow
from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.scripts import Script

COUNT = Script("count", "-- KEYS[1] counter\nreturn redis.call('INCR', KEYS[1])")


def counted() -> flow.Flow[int]:
    """Increment the counter."""
    count: int = yield COUNT(["counter"])
    return count


def run() -> None:
    """Print the rates."""
    with site() as client:
        ours = connections.client()
        client.evalsha(client.script_load(COUNT.source), 1, "counter")
        compare(
            {
                "redis-py PING": client.ping,
                "redis-py EVALSHA": lambda: client.evalsha(COUNT.digest, 1, "counter"),
                "kit: call EVALSHA": lambda: ours.call("EVALSHA", COUNT.digest, 1, "counter"),
                "kit: flow with the script": lambda: flow.run(counted(), ours),
            },
            base="redis-py EVALSHA",
        )
        print(f"kit: async flow, one after the other: {asyncio.run(rate()):,.0f} ops/s\n")
        gone = {**settings.REDIS_KIT["CONNECTIONS"], "gone": {"URL": "redis://127.0.0.1:1/0"}}
        with override_settings(REDIS_KIT={**settings.REDIS_KIT, "CONNECTIONS": gone}):
            compare({"redis-py PING": client.ping, "kit: refusal by an open breaker": refused}, base="redis-py PING")


def refused() -> None:
    """Call an unreachable server; the breaker opens at the third call."""
    with contextlib.suppress(RedisUnavailable):
        connections.client("gone").call("PING")


async def rate() -> float:
    """Return flows a second in one task."""
    client = connections.aclient()
    began, count = time.perf_counter(), 3000
    for _ in range(count):
        await flow.arun(counted(), client)
    return count / (time.perf_counter() - began)
