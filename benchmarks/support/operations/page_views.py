"""Page views: a view that is counted by itself, a batch as the middleware sends it, and reads."""

from datetime import date, timedelta
from itertools import count
from typing import Any

from benchmarks.support.server_cost import Operations, Part
from benchmarks.support.workers.server import Server
from redis_kit.pageviews import PageViews, periods
from redis_kit.pageviews.batch import Event, ViewBatch, identified

BATCH = 100


def page_views(server: Server) -> Part:
    """Return all calls of page views."""
    page, numbers, client, today = PageViews("bench"), count(), server.client, date.today()
    week: dict[str, Any] = {"start": today - timedelta(days=6), "end": today}
    sketches = [f"bench:visitors:{number}" for number in range(7)]
    operations: Operations = {
        "redis-py: PFADD": lambda: client.pfadd("bench:visitors:0", next(numbers)),
        "kit: add": lambda: page.add(f"visitor {next(numbers)}"),
        "redis-py: PFCOUNT of 7": lambda: client.pfcount(*sketches),
        "kit: visitors of 7 days": lambda: page.visitors(**week),
        "kit: views of 7 days": lambda: page.views(**week),
        "kit: by_day of 7 days": lambda: page.by_day(**week),
        "kit: by_hour": page.by_hour,
        "kit: top": page.top,
    }
    return Part("page views", operations)


def view_batches(server: Server) -> Part:
    """Return a batch of the middleware, with views of one page and ten objects, and what one would write instead."""
    page, numbers = PageViews("bench"), count()

    def send() -> None:
        now = periods.now()
        events = [Event(now, "bench", str(n % 10), identified(f"visitor {next(numbers)}")) for n in range(BATCH)]
        page.run_flow(ViewBatch(events, using="default", writer="bench", number=next(numbers)).send())

    def pipeline(periods_of: int) -> None:
        pipe = server.client.pipeline(transaction=False)
        for n in range(BATCH):
            visitor = f"visitor {next(numbers)}"
            for name in ("site", "page", f"object {n % 10}"):
                for period in range(periods_of):
                    pipe.pfadd(f"bench:{name}:visitors:{period}", visitor)
                pipe.incr(f"bench:{name}:views")
        pipe.execute()

    kit, peer = "kit: batch, with 5 sketches of a name, and lists", "redis-py: pipeline of INCR and PFADD to 5 sketches"
    operations: Operations = {
        kit: send,
        "redis-py: pipeline of INCR and PFADD": lambda: pipeline(1),
        peer: lambda: pipeline(5),
    }
    title = f"page views, per view, {BATCH} in a batch: compare whole"  # a pipeline is one round trip
    return Part(title, operations, goals=((kit, peer, 1.0),), worth=BATCH, whole=True)
