"""Measurement side by side: short slices of each function in turn, so that a slow moment of the machine hits all."""

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
    """Run a Django site on an embedded server; return a redis-py client.

    With ``one_core`` client and server share a core: that measures the work, without the time to wake a core.
    """
    with pinned() if one_core else contextlib.nullcontext(), EmbeddedServer() as server:
        configure()
        from django.test.utils import override_settings

        # On a busy machine a slow answer must not look like an outage, in which the failure policy answers.
        with override_settings(REDIS_KIT={"CONNECTIONS": {"default": {"URL": server.url}}, "READ_TIMEOUT": 5}):
            client = redis.Redis.from_url(server.url)
            describe(client, "on one of them" if one_core else "on all of them")
            yield client
            client.close()


def configure() -> None:
    """Configure Django in this process, unless it is configured."""
    if not settings.configured:
        settings.configure(
            SECRET_KEY="only for benchmarks",
            ALLOWED_HOSTS=["testserver"],
            INSTALLED_APPS=[
                "django.contrib.auth",
                "django.contrib.contenttypes",
                "redis_kit",
                "benchmarks.support.search",
            ],
            DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
            USE_TZ=True,
        )
        django.setup()


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """Keep this process and its new children on one core, if the system supports that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield
    os.sched_setaffinity(0, cores)


def describe(client: redis.Redis, where: str) -> None:
    """Print the versions and the cores of this measurement."""
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
    before: Callable[[], object] = bool,
) -> dict[str, float]:
    """Print operations a second and p50/p99 of each, with the ratio of its rate to the base's; return the ratios.

    On a busy machine, short slices in many rounds give better ratios. A call may be ``worth`` several operations; its
    times are those of the whole call. ``before`` is called before each slice, such as to remove what others stored.
    """
    rates: dict[str, list[float]] = {name: [] for name in things}
    times: dict[str, list[float]] = {name: [] for name in things}
    for _ in range(rounds):
        for name, thing in things.items():
            before()
            rates[name].append(_slice(thing, times[name], seconds) * (worth or {}).get(name, 1))
    ratios = {}
    print(f"{'':44}{'ops/s':>9}{'ratio':>8}{'p50 us':>9}{'p99 us':>9}")
    for name in things:
        pairs = zip(rates[name], rates[base], strict=True)
        ratios[name] = statistics.median(own / other for own, other in pairs)
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
