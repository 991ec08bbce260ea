"""Counted views and visitors beside exact ones: an access log is replayed at its own times, or a log is made up.

``python -m tests.chaos pageviews.truth --log access.log.gz`` prints the figures of a log in Combined Log Format, and
without a log those of 40,000 invented views. No views may differ, the visitors of at most one question in a hundred may
differ by more than 2 % (and 1), and none by more than 4 % (and 3), which is five standard errors.
"""

import random
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from demo import access_log
from redis_kit.pageviews import PageViews
from redis_kit.pageviews.batch import Event, ViewBatch, identified
from redis_kit.pageviews.rules import is_bot
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome, option
from tests.chaos.engine.stage import stage

TOLERANCE, MOST = (0.02, 1), (0.04, 3)
BATCH = 500
INVENTED = 40_000
FIRST = datetime(2024, 1, 15, tzinfo=UTC)
SPAN = 120  # days


def read(path):
    """Yield the time, page and visitor of each GET of a log by people, in the order of time."""
    found = []
    for hit in access_log.read(Path(path)):
        if hit and hit.method == "GET" and not is_bot(hit.agent):
            moment = datetime.fromtimestamp(access_log.seconds(hit), UTC)
            found.append((moment, hit.target.partition("?")[0][:200], f"{hit.address} {hit.agent}"))
    return sorted(found)


def invented(seed, count=INVENTED):
    """Yield views over four months: few pages have most views, and visitors return."""
    chance = random.Random(seed)
    pages = [f"page {number}" for number in range(60)]
    weights = [1 / (number + 1) for number in range(60)]
    moments = sorted(chance.random() * SPAN for _ in range(count))
    for moment, page in zip(moments, chance.choices(pages, weights, k=count), strict=True):
        yield FIRST + timedelta(days=moment), page, f"visitor {int(chance.expovariate(1 / 2500))}"


class Exact:
    """Sets of visitors and numbers of views by page and day. The page "" is all of them."""

    def __init__(self):
        self.views, self.visitors = defaultdict(int), defaultdict(set)

    def see(self, day, page, visitor):
        for name in ("", page):
            self.views[name, day] += 1
            self.visitors[name, day].add(visitor)

    def in_range(self, page, days):
        union = set().union(*(self.visitors.get((page, day), ()) for day in days))
        return sum(self.views.get((page, day), 0) for day in days), len(union)


def replay(log):
    """Count the views of a log as the middleware's buffer does, and return the exact figures."""
    exact, events = Exact(), []
    for moment, page, visitor in log:
        events.append(Event(moment, page, "", identified(visitor)))
        exact.see(moment.date(), page, visitor)
    for begin in range(0, len(events), BATCH):
        batch = ViewBatch(events[begin : begin + BATCH], using="default", writer="truth", number=begin + 1)
        assert PageViews("any", on_failure="raise").run_flow(batch.send()) == 0
    return exact


def compare(exact, *, pages=25):
    """Yield what was asked, the counted and the exact figures: of each day, of the whole log, and of its 90-day ranges.

    The days of all pages together, and of the pages with the most views.
    """
    days = sorted({day for _, day in exact.views})
    totals = defaultdict(int)
    for (page, _), views in exact.views.items():
        totals[page] += views
    ranges = [[day] for day in days] + [days]
    ranges += [[day for day in days if start <= day < start + timedelta(90)] for start in days[:30:7]]
    for page in sorted(totals, key=totals.get, reverse=True)[: pages + 1]:
        views = PageViews(page, on_failure="raise") if page else PageViews.site(on_failure="raise")
        for inside in ranges:
            start, end = inside[0], inside[-1]
            counted = views.views(start, end), int(views.visitors(start, end))
            yield (page or "all pages", start, end), counted, exact.in_range(page, inside)


def off(rows, tolerance):
    """Return the rows whose views differ, or whose visitors differ by more than that share and that number."""
    share, number = tolerance
    return [
        (asked, counted, exact)
        for asked, counted, exact in rows
        if counted[0] != exact[0] or abs(counted[1] - exact[1]) > max(share * exact[1], number)
    ]


@dataclass(frozen=True)
class Plan(program.Plan):
    """Which log is replayed, or how many views are invented."""

    views: int = INVENTED
    log: str = option("", "a log in Combined Log Format, in place of invented views")


def run(plan):
    """Replay a log on a server of its own, and compare."""
    # One identity over all days, so that ranges can be compared with exact sets.
    with stage(READ_TIMEOUT=5.0, PAGEVIEWS={"VISITOR": "user", "RETENTION": 3660 * 86_400}):
        rows = list(compare(replay(read(plan.log) if plan.log else invented(plan.seed, plan.views))))
    far = off(rows, TOLERANCE)
    errors = sorted(abs(counted[1] - exact[1]) / exact[1] for _, counted, exact in rows if exact[1] >= 50)
    lines = [
        f"{page:12} {start} to {end}: views {counted[0]:,} of {exact[0]:,}, visitors {counted[1]:,} of {exact[1]:,}"
        for (page, start, end), counted, exact in [row for row in rows if row[0][0] == "all pages"][:12]
    ]
    lines.append(
        f"{len(rows):,} questions, {sum(counted[0] == exact[0] for _, counted, exact in rows):,} with exact views"
    )
    lines.append(f"visitors, of 50 and more: median error {errors[len(errors) // 2]:.2%}, largest {errors[-1]:.2%}")
    lines.append(f"visitors, of all: {len(far)} questions are off by more than {TOLERANCE[0]:.0%}")
    wrong = [f"{asked}: counted {counted}, exact {exact}" for asked, counted, exact in off(rows, MOST)]
    many = [f"{len(far)} of {len(rows)} questions"] if len(far) > len(rows) / 100 else []
    return Outcome("\n".join(["", *lines]), {"wrong": wrong, "far": many})
