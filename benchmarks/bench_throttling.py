"""Throttles: each strategy beside a bare EVALSHA and other packages, and a refusal beside a round trip."""

import asyncio
import itertools
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import redis
from django.http import HttpResponse
from django.test import RequestFactory, override_settings

from benchmarks.support import limiters
from benchmarks.support.limiters import LIMIT, Check
from benchmarks.support.measurement import compare, site

BARE, SAME = "redis-py: EVALSHA of 'return 1'", "redis-py: EVALSHA of the kit's script"
SHORT: dict[str, Any] = {"rounds": 60, "seconds": 0.025}
AT_ONCE, HITS = 64, 50  # identities in turn, and calls of each: 25 earlier calls on average
IDLE = 100_000  # identities
THREE = f"{LIMIT}/m; 3000/h; 20000/d"
EIGHT = f"{LIMIT}/m; 200/2m; 300/3m; 400/4m; 3000/h; 20000/d; 100000/w; 300000/month"


def run() -> None:
    """Print one table per strategy, then the goals of the kit's throttles."""
    with site() as client:
        url = f"unix://{client.connection_pool.connection_kwargs['path']}"
        cache = {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": url}}
        with override_settings(CACHES=cache):
            goals = strategies(client, url) + several(client) + refusals(client)
        behind_the_decorator()
        asyncio.run(one_after_the_other())
        for goal in goals + memory(client):
            print(goal)
        print()


def strategies(client: redis.Redis, url: str) -> list[str]:
    """Compare allowed calls of each strategy with the same kind of limiter of other packages."""
    from redis_kit.throttling import Throttle

    throttled, limits = limiters.throttled_py(url), limiters.limits(url)
    kinds: dict[str, tuple[float, dict[str, Check]]] = {
        "gcra": (0.75 if find_spec("hiredis") else 0.8, picked(throttled, "gcra", "leaking_bucket")),
        "token_bucket": (0.8, picked(throttled, "token_bucket")),
        "fixed_window": (
            0.8,
            picked(throttled, "fixed_window")
            | picked(limits, "fixed window")
            | {"django-ratelimit": limiters.django_ratelimit()},
        ),
        "sliding_counter": (0.0, picked(throttled, "sliding_window") | picked(limits, "sliding window counter")),
        "sliding_log": (
            0.7,
            picked(limits, "moving window") | {"Django REST framework": limiters.rest_framework()},
        ),
    }
    goals = []
    for kind, (least, peers) in kinds.items():
        throttle, name = Throttle(f"bench {kind}", f"{LIMIT}/m", strategy=kind), f"kit: {kind}"
        things = {title: admitted(title, check) for title, check in {name: throttle.hit, **peers}.items()}
        ratios = compare(bare(client) | same(client, kind) | things, base=BARE, **SHORT)
        if SAME in ratios:
            goals.append(goal(f"{kind} admitted, to the same script by redis-py", ratios[name] / ratios[SAME], 0.0))
        best = max(peers, key=ratios.__getitem__)
        goals.append(goal(f"{kind} admitted, to a bare EVALSHA", ratios[name], least))
        goals.append(goal(f"{kind} admitted, to the fastest peer ({best})", ratios[name] / ratios[best], 1.0))
    return goals


def several(client: redis.Redis) -> list[str]:
    """Compare decisions of several rates and several throttles at once."""
    from redis_kit.throttling import Throttle, hit_all

    three, eight = Throttle("bench three", THREE), Throttle("bench eight", EIGHT)
    together = [Throttle(f"bench {part}", THREE.split("; ")[part]) for part in range(3)]
    ratios = compare(
        bare(client)
        | {
            "kit: gcra, three rates": admitted("three", three.hit),
            "kit: gcra, eight rates": admitted("eight", eight.hit),
            "kit: hit_all() of three throttles": admitted(
                "all", lambda identity: hit_all([(one, identity) for one in together])[0]
            ),
        },
        base=BARE,
        **SHORT,
    )
    return [goal("three rates at once, to a bare EVALSHA", ratios["kit: gcra, three rates"], 0.7)]


def refusals(client: redis.Redis) -> list[str]:
    """Compare a refusal from the refusal cache with a round trip."""
    from redis_kit.throttling import Throttle

    spent = Throttle("bench spent", "1/d")
    spent.hit("joe")
    name, ping = "kit: refusal from memory", "redis-py: PING"
    ratios = compare({ping: client.ping, name: lambda: spent.hit("joe")}, base=ping, **SHORT)
    return [goal("refusal from memory, to a round trip", ratios[name], 20)]


def behind_the_decorator() -> None:
    """Compare a view with one behind the decorator."""
    from redis_kit.throttling import Throttle, throttle

    limit, request = Throttle("bench view", "1000000/s"), RequestFactory().get("/")

    def view(request: object) -> HttpResponse:
        return HttpResponse()

    guarded = throttle(limit, key="ip")(view)

    def behind() -> HttpResponse:
        request.__dict__.pop("throttles", None)  # like a new request, without decisions
        return guarded(request)

    things = {
        "kit: hit()": lambda: limit.hit("joe"),
        "view": lambda: view(request),
        "view behind the decorator": behind,
    }
    compare(things, base="kit: hit()", **SHORT)


async def one_after_the_other() -> None:
    """Print decisions a second in one task."""
    from redis_kit.throttling import Throttle

    limit, began, count = Throttle("bench async", "1000000/s"), time.perf_counter(), 3000
    for _ in range(count):
        await limit.ahit("joe")
    print(f"kit: ahit(), one after the other: {count / (time.perf_counter() - began):,.0f} ops/s\n")


def memory(client: redis.Redis) -> list[str]:
    """Measure the memory of idle identities: the server's figure for one key, and the average of all of them."""
    from redis_kit.throttling import Throttle

    client.flushall()
    limit = Throttle("login", f"{LIMIT}/h")
    limit.hit("first")
    before = client.info("memory")["used_memory"]
    for number in range(IDLE):
        limit.hit(f"user:{number}")
    taken = (client.info("memory")["used_memory"] - before) / IDLE
    own = client.memory_usage(limit.keys("user:1")[0])
    print(f"gcra: a caller's key takes {own} bytes, and with its share of the server's tables {taken:.0f}\n")
    return [f"{'ok   ' if taken <= 120 else 'SHORT'} {'bytes per idle caller of gcra':78}{taken:6.0f} (at most 120)"]


def bare(client: redis.Redis) -> dict[str, Callable[[], object]]:
    """Return a call of the shortest script, for the same identities."""
    digest = client.script_load("return 1")
    return {BARE: admitted("bare", lambda caller: client.evalsha(digest, 1, caller))}


def same(client: redis.Redis, kind: str) -> dict[str, Callable[[], object]]:
    """Return the kit's script with the kit's arguments, sent by redis-py: the server's part of the time."""
    from redis_kit.throttling import Throttle
    from redis_kit.throttling.engine.decide import Call, decide

    if kind == "sliding_log":
        return {}  # its only identity would soon be refused
    step: Any = next(
        decide([Call(Throttle(f"bench same {kind}", "100000000/m", strategy=kind), "joe", 1)], consume=True)
    )
    client.script_load(step.script.source)
    return {SAME: lambda: client.evalsha(*step.command[1:])}


def admitted(name: str, check: Check) -> Callable[[], object]:
    """Return a check for new identities all the time. Each makes fewer calls than its rate allows.

    Other packages use the same keys for several limiters, so the identities include the limiter's name.
    """
    turn = itertools.count()

    def call() -> object:
        number = next(turn)
        return check(f"{name}:{number // (AT_ONCE * HITS)}:{number % AT_ONCE}")

    assert call()
    return call


def picked(checks: dict[str, Check], *kinds: str) -> dict[str, Check]:
    """Return the checks of these kinds."""
    return {name: check for name, check in checks.items() if name.partition(": ")[2] in kinds}


def goal(what: str, measured: float, least: float) -> str:
    """Return the line of a goal and its result."""
    wanted = f" (at least {least:g})" if least else ""
    return f"{'     ' if not least else 'ok   ' if measured >= least else 'SHORT'} {what:78}{measured:6.2f}{wanted}"
