"""Throttles: an admitted call beside a bare EVALSHA, and a remembered refusal beside a round trip."""

import asyncio
import time

from django.http import HttpResponse
from django.test import RequestFactory

from benchmarks.measure import compare, site


def run() -> None:
    """Print the rates and the two ratios that count."""
    with site() as client:
        from redis_kit.throttling import Throttle, throttle

        one, four = (
            Throttle("one", "1000000/s"),
            Throttle("four", "1000000/s; 1000000/m; 1000000/h; 1000000/d burst 900000000"),
        )
        spent, never_spent = Throttle("spent", "1/d"), Throttle("view", "1000000/s")
        spent.hit("joe")
        request = RequestFactory().get("/")

        @throttle(never_spent, key="ip")
        def guarded(request: object) -> HttpResponse:
            return HttpResponse()

        bare = one._script("bare", 1, 1, 0).command[1:]
        client.script_load(one._strategy.script.source)
        ratios = compare(
            {
                "redis-py PING": client.ping,
                "redis-py EVALSHA of the same script": lambda: client.evalsha(*bare),
                "kit: hit(), admitted": lambda: one.hit("joe"),
                "kit: hit(), admitted by four rates": lambda: four.hit("joe"),
                "kit: hit(), refusal remembered": lambda: spent.hit("joe"),
                "kit: peek()": lambda: one.peek("joe"),
                "view": lambda: HttpResponse(),
                "view behind the decorator": lambda: guarded(request),
            },
            base="redis-py EVALSHA of the same script",
        )
        print(f"kit: ahit(), one after the other: {asyncio.run(rate(one)):,.0f} ops/s")
        print(f"admitted hit() to a bare EVALSHA: {ratios['kit: hit(), admitted']:.2f} (at least 0.8)")
        remembered = ratios["kit: hit(), refusal remembered"] / ratios["redis-py PING"]
        print(f"remembered refusal to a round trip (PING): {remembered:.0f} (at least 20)\n")


async def rate(limit: object) -> float:
    """Return decisions a second in one task."""
    began, count = time.perf_counter(), 3000
    for _ in range(count):
        await limit.ahit("joe")  # type: ignore[attr-defined]
    return count / (time.perf_counter() - began)
