"""Each page of the dashboard on a full server: its round trips, its cost and its size.

``python -m tests.chaos dashboard.page_load`` fills a server of its own with 1,000,000 keys, 100,000 jobs, 10,000 locks
with waits at all times, 10,000 throttled identities, 10,000 users and 1,000 pages; ``python -m tests.chaos
dashboard.page_load 0.1`` with a tenth. It takes a minute, and 300 MB.
"""

import gzip
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest import mock

from redis_kit.core import conf, connections
from redis_kit.core.client.single import Client
from redis_kit.core.settings import KitSettings
from redis_kit.dashboard.collect import panels
from redis_kit.locks import Lock, inspection
from redis_kit.pageviews import PageViews, periods
from redis_kit.pageviews.batch import Event, ViewBatch, identified
from redis_kit.queues import Queue, chain
from redis_kit.queues.engine import calls
from redis_kit.throttling import Throttle
from redis_kit.throttling.statistics.counters import NUMBER, SLOT
from tests.app.models import User
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome, option
from tests.chaos.engine.stage import create_tables, stage
from tests.fixtures.dashboard import ADMIN
from tests.queues.support import scheduled, workflow_tasks

ROUNDS = 5
OPTIONS = {"QUEUES": {"NAMES": [f"queue-{number}" for number in range(10)]}, "THROTTLING": {"REMEMBER": 0}}
GOALS = {"round trips": 3, "server ms": 25, "kB": 60}
KEYS = """
for number = tonumber(ARGV[2]), tonumber(ARGV[3]) do
    redis.call("SET", "session:" .. number, "x")
    redis.call("SET", ARGV[1] .. ":{pageviews:" .. number .. "}:x", "x")
end
"""
held: list[Any] = []  # leases and throttles, which end when nobody refers to them


class Cost(NamedTuple):
    """The cost of a page: the medians of some requests."""

    trips: int
    server: float  # ms of processor time
    size: float  # kB, compressed
    whole: float  # ms

    @property
    def misses(self) -> list[str]:
        found = dict(zip(GOALS, (self.trips, self.server, self.size), strict=True))
        return [name for name, goal in GOALS.items() if found[name] > goal]


def fill(share: float) -> None:
    """Fill the server with this share of all."""
    prefix, client = conf.section(KitSettings).PREFIX, connections.client()
    for first in range(1, int(500_000 * share), 5_000):
        client.call("EVAL", KEYS, 0, prefix, first, min(first + 4_999, int(500_000 * share)))
    held.extend(Lock(f"lock-{number}", timeout=3600).acquire() for number in range(int(10_000 * share)))
    held.append(throttle := Throttle("api", "1/h"))
    client.call("HSET", throttle.key("counts"), *_full_counts(int(time.time()) // 3600))
    for number in range(int(10_000 * share)):
        throttle.hit(f"user:{number}")
        throttle.hit(f"user:{number}")
    for number in range(int(10_000 * share)):
        user = User(pk=number)
        user._state.adding = False
        user.sign_in()
    _fill_queues(share)
    _fill_waits(share)
    _view(int(1_000 * share), int(20_000 * share))


def _full_counts(hour: int) -> list[bytes | str | int]:
    """Return the fields of 73 hours with calls in each minute, and of 91 days with calls in each hour."""
    fields: list[bytes | str | int] = []
    for number in range(hour - 72, hour + 1):
        fields += [number % 73, NUMBER.pack(number) + b"".join(SLOT.pack(minute, 50, 0) for minute in range(60))]
    for number in range(hour // 24 - 90, hour // 24 + 1):
        fields += [f"d{number % 91}", NUMBER.pack(number) + b"".join(SLOT.pack(at, 3000, 0) for at in range(24))]
    return fields


def _fill_queues(share: float) -> None:
    for name in OPTIONS["QUEUES"]["NAMES"]:
        queue = Queue(name)
        queue.put_many([{"task": "shop.tasks.send", "args": [number]} for number in range(int(1_000 * share))])
        while jobs := queue.claim(100, worker="w"):
            for job in jobs:
                queue.nack(job, max_attempts=1, error=f"ValueError: {hash(job.id) % 50}")
        queue.put_many(range(int(8_000 * share)))
        queue.put_many(range(int(1_000 * share)), delay=3600)
        queue.claim(int(100 * share), worker="w")
    for number in range(100):
        said = {"host": f"web{number}", "pid": 7, "supervisor": f"s{number}", "supervisor_pid": 5, "state": "working"}
        calls.heartbeat(Queue("queue-0").key(""), f"w{number}", json.dumps(said)).run(connections.client())
        scheduled.declared(workflow_tasks.work.module_path, f"schedule {number}", every=3600)
        chain(workflow_tasks.work.step(1), workflow_tasks.work.step(2)).enqueue()


def _fill_waits(share: float) -> None:
    """Store waits in this share of all minutes of 72 hours, and of all hours of 90 days, in each bucket."""
    now = int(time.time())
    for part, seconds, size in (("minutes", 60, inspection.MINUTES), ("hours", 3600, inspection.HOURS)):
        ring = bytearray(size * inspection.ENTRY.size)
        for number in range(now // seconds - int(size * share) + 1, now // seconds + 1):
            inspection.ENTRY.pack_into(ring, number % size * inspection.ENTRY.size, number, 1234, 567890, 12345, 12, 0)
        for bucket in inspection.all_buckets("default"):
            connections.client().call("SET", bucket.key(part), bytes(ring))


def _view(pages: int, views: int) -> None:
    moment, batch = periods.now(), 500
    for first in range(0, views, batch):
        events = [
            Event(moment, f"page-{n % pages}", str(n % 7), identified(f"v{n}"), f"site-{n % 90}.example", f"c{n % 90}")
            for n in range(first, min(first + batch, views))
        ]
        PageViews("any").run_flow(ViewBatch(events, using="default").send())


@contextmanager
def counted() -> Iterator[list[Any]]:
    """Collect the round trips during the block."""
    trips: list[Any] = []
    with mock.patch.multiple(Client, **{name: _noting(getattr(Client, name), trips) for name in ("call", "batch")}):
        yield trips


def _noting(method: Any, trips: list[Any]) -> Any:
    def noted(*args: Any) -> Any:
        trips.append(args[1:])
        return method(*args)

    return noted


def measure(site: Any, server: Any, url: str) -> Cost:
    """Return the cost of a page for a client that is signed in."""
    site.get(url)  # loads scripts and templates
    costs = []
    for _ in range(ROUNDS):
        with counted() as trips:
            used, began = _processor(server), time.perf_counter()
            response = site.get(url)
            whole = time.perf_counter() - began
            spent = _processor(server) - used
        assert response.status_code == 200, url
        assert b"rk-error" not in response.content, url
        costs.append(Cost(len(trips), spent * 1e3, len(gzip.compress(response.content)) / 1e3, whole * 1e3))
    return Cost(*map(statistics.median, zip(*costs, strict=True)))


def _processor(server: Any) -> float:
    used = server.info("cpu")
    return float(used["used_cpu_user"] + used["used_cpu_sys"])


@dataclass(frozen=True)
class Plan(program.Plan):
    """How full the server is."""

    share: float = option(1.0, "of all keys, jobs and pages")


def run(plan: Plan) -> Outcome:
    """Fill a server of its own and measure each page."""
    from django.test import Client as Site

    create_tables(User)
    site = Site()
    site.force_login(User.objects.create_superuser("boss"))
    with stage(READ_TIMEOUT=5, **OPTIONS) as place, place.server.client() as client:
        fill(plan.share)
        keys, costs = client.dbsize(), measure_all(site, client)
    misses = [f"{url or 'overview'}: {', '.join(cost.misses)}" for url, cost in costs.items() if cost.misses]
    return Outcome(f"{keys:,} keys", {"goals missed": misses})


def measure_all(site: Any, server: Any) -> dict[str, Cost]:
    """Print and return the cost of each page."""
    urls = [ADMIN, *(f"{ADMIN}{panel.slug}/" for panel in panels())]
    urls += [f"{ADMIN}throttles/?throttle=api&range={hours}" for hours in (1, 24, 72, 2160)]
    urls += [f"{ADMIN}queues/?queue=queue-0", f"{ADMIN}keys/?text=9999", f"{ADMIN}locks/?name=99&page=2"]
    urls += [f"{ADMIN}locks/?range={hours}" for hours in (24, 2160)]
    costs = {url.removeprefix(ADMIN): measure(site, server, url) for url in urls}
    print(f"{'':36}{'round trips':>12}{'server ms':>10}{'kB':>8}{'ms':>8}")
    for url, cost in costs.items():
        missed = f"  SHORT: {', '.join(cost.misses)}" if cost.misses else ""
        print(f"{url or 'overview':36}{cost.trips:12}{cost.server:10.1f}{cost.size:8.1f}{cost.whole:8.0f}{missed}")
    return costs
