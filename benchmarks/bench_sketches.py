"""Page views on the server: the memory of a page by its visitors a day, and the work for a view in a batch."""

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from benchmarks.support.measurement import site
from redis_kit.pageviews import PageViews
from redis_kit.pageviews.batch import Event, ViewBatch, identified

VISITORS = (10, 100, 1000, 10_000, 100_000)  # a day; each views the page twice
DAYS = 7  # a week from Monday on
MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
BATCH = 500
RETURNING = 0.5  # of the visitors of a day come from a pool of ten times as many
HOUR_DAYS, YEAR = 8, 400  # days for which hours, and all else, are stored by default
ROUNDS, SLICE, PIPELINE = 15, 20, 100  # turns, batches in each, views in a batch
FAMILIES = {10: "day", 8: "week", 7: "month", 13: "hours"}  # by the length of the period in a key


def run() -> None:
    """Print the bytes of one page: its sketches by period, its numbers, and all after 400 days."""
    with site() as client:
        titles = ("day", "week", "month", "24 hours", "numbers, a day", "in 400 days")
        print(f"{'visitors a day':>16}" + "".join(f"{title:>16}" for title in titles))
        for count in VISITORS:
            client.flushall()
            _view(count)
            sizes = _sizes(client)
            row = [sizes["day"], sizes["week"], sizes["month"], sizes["hours"], sizes["numbers"], _stored(sizes)]
            print(f"{count:16,}" + "".join(f"{round(size):16,}" for size in row))
        client.flushall()
        _print_work(client)


def _print_work(client: Any) -> None:
    """Print the processor time of the server's main thread for each view, the least of all turns."""
    cases = _cases(client)
    least = dict.fromkeys(cases, float("inf"))
    for _ in range(ROUNDS):
        for name, send in cases.items():
            send()
            before = _used(client)
            for _ in range(SLICE):
                send()
            least[name] = min(least[name], (_used(client) - before) / SLICE / PIPELINE * 1e6)
    print(f"\nserver's microseconds for a view, {PIPELINE} in a batch")
    for name, microseconds in least.items():
        print(f"{name:48}{microseconds:8.1f}")
    print()


def _cases(client: Any) -> dict[str, Callable[[], None]]:
    """Return batches: bare commands, and those of the kit for one page with ten objects."""
    page, numbers, pipeline = PageViews("bench", on_failure="raise"), count(), client.pipeline(transaction=False)

    def bare(sketches: int) -> None:
        for _ in range(PIPELINE):
            visitor = next(numbers)
            for sketch in range(sketches):
                pipeline.pfadd(f"bench:sketch:{sketch}", visitor)
            if sketches > 1:
                pipeline.incr("bench:views")
        pipeline.execute()

    def send(new: int) -> None:
        visitors = [next(numbers) if place < new else place for place in range(PIPELINE)]
        moment = datetime.now(UTC)
        events = [Event(moment, "bench", str(n % 10), identified(f"v{visitor}")) for n, visitor in enumerate(visitors)]
        page.run_flow(ViewBatch(events, using="default", writer="bench", number=next(numbers)).send())

    return {
        "redis-py: PFADD, pipelined": lambda: bare(1),
        "redis-py: 3 PFADD and INCR, pipelined": lambda: bare(3),
        "kit: all visitors are new": lambda: send(PIPELINE),
        "kit: one visitor in ten is new": lambda: send(PIPELINE // 10),
    }


def _used(client: Any) -> float:
    usage = client.info("cpu")
    return float(usage["used_cpu_user_main_thread"] + usage["used_cpu_sys_main_thread"])


def _view(count: int) -> None:
    """Count the views of a week: half of a day's visitors come on one day only."""
    page, number = PageViews("page", on_failure="raise"), 0
    for day in range(DAYS):
        known = int(count * RETURNING)
        visitors = [f"v{(day * known + n * 7) % (10 * count)}" for n in range(known)]
        visitors += [f"day {day} {n}" for n in range(count - known)]
        events = []
        for place, visitor in enumerate(visitors * 2):
            moment = MONDAY + timedelta(days=day, seconds=86_399 * place / (2 * count))
            events.append(Event(moment, "page", "", identified(visitor), f"site-{place % 20}.example"))
        for begin in range(0, len(events), BATCH):
            number += 1
            batch = ViewBatch(events[begin : begin + BATCH], using="default", writer="bench", number=number)
            page.run_flow(batch.send())


def _sizes(client: Any) -> dict[str, float]:
    """Return the bytes of each kind of key of the page: those of a day are the mean of the week."""
    sizes: defaultdict[str, float] = defaultdict(float)
    for key in client.scan_iter("rk:{pageviews:page}:*", count=1000):
        part, _, period = key.decode().rsplit("}:", 1)[1].partition(":")
        size = client.memory_usage(key, samples=0)
        if part == "visitors" and len(period) in FAMILIES:
            family = FAMILIES[len(period)]
            sizes[family] += size / (DAYS if family in ("day", "hours") else 1)
        elif part in ("views", "referrers"):
            sizes["numbers"] += size / (1 if len(period) == 7 else DAYS) / (30 if len(period) == 7 else 1)
    return sizes


def _stored(sizes: dict[str, float]) -> float:
    days = sizes["day"] + sizes["numbers"]
    return YEAR * days + YEAR / 7 * sizes["week"] + YEAR / 30 * sizes["month"] + HOUR_DAYS * sizes["hours"]
