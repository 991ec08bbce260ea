"""Measuring side by side: short slices of each thing in turn, so that a slow moment of the machine falls on all."""

import contextlib
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator

import django
import redis
from django.conf import settings

from redis_kit.core.embedded.server import EmbeddedServer

ROUNDS = 15
SLICE = 0.15  # seconds


@contextlib.contextmanager
def site(*, one_core: bool = True) -> Iterator[redis.Redis]:
    """A Django site on an embedded server; gives a client of redis-py.

    Client and server share one core unless told otherwise: that is the plain work, without the time to wake a core.
    """
    with pinned() if one_core else contextlib.nullcontext(), EmbeddedServer() as server:
        configure()
        from django.test.utils import override_settings

        # A machine that is busy elsewhere must not look like an outage, in which a policy answers without asking.
        with override_settings(REDIS_KIT={"CONNECTIONS": {"default": {"URL": server.url}}, "READ_TIMEOUT": 5}):
            client = redis.Redis.from_url(server.url)
            describe(client, "on one of them" if one_core else "on all of them")
            yield client
            client.close()


def configure() -> None:
    """Make this process a Django site, unless it is one."""
    if not settings.configured:
        settings.configure(
            SECRET_KEY="only for benchmarks",
            INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "redis_kit"],
            DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
            USE_TZ=True,
        )
        django.setup()


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """Keep this process, and those that it starts meanwhile, on one core, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield
    os.sched_setaffinity(0, cores)


def describe(client: redis.Redis, where: str) -> None:
    """Print what was measured on what."""
    info = client.info("server")
    kind = f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"
    print(f"{kind}, redis-py {redis.__version__}, Django {django.get_version()}, Python {platform.python_version()}, ")
    print(f"{os.cpu_count()} cores, client and server {where}\n")


def compare(
    things: dict[str, Callable[[], object]],
    *,
    base: str,
    rounds: int = ROUNDS,
    seconds: float = SLICE,
    worth: dict[str, int] | None = None,
) -> dict[str, float]:
    """Print operations a second and p50/p99 of each, with the ratio of its rate to the base's; return the ratios.

    Short slices in many rounds put each thing nearer to the base, where other work comes and goes. A call may be
    ``worth`` several operations; its times are those of the whole call.
    """
    rates: dict[str, list[float]] = {name: [] for name in things}
    times: dict[str, list[float]] = {name: [] for name in things}
    for _ in range(rounds):
        for name, thing in things.items():
            rates[name].append(_slice(thing, times[name], seconds) * (worth or {}).get(name, 1))
    ratios = {}
    print(f"{'':44}{'ops/s':>9}{'ratio':>8}{'p50 us':>9}{'p99 us':>9}")
    for name in things:
        pairs = zip(rates[name], rates[base], strict=True)
        ratios[name] = statistics.median(mine / other for mine, other in pairs)
        ordered = sorted(times[name])
        p50, p99 = (ordered[int(len(ordered) * share)] * 1e6 for share in (0.5, 0.99))
        print(f"{name:44}{statistics.median(rates[name]):9,.0f}{ratios[name]:8.2f}{p50:9.1f}{p99:9.1f}")
    print()
    return ratios


def _slice(thing: Callable[[], object], times: list[float], seconds: float) -> float:
    thing()
    began = last = time.perf_counter()
    count = 0
    while last - began < seconds:
        thing()
        now = time.perf_counter()
        times.append(now - last)
        last, count = now, count + 1
    return count / (last - began)
