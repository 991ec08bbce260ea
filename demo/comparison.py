"""The kit's counts of a replayed log, beside exact counts."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from django.urls import resolve
from django.utils import timezone

from demo import shadow_mode
from demo.access_log import Hit
from demo.console import say
from demo.replay import Answer, Replay
from demo.session import Session
from example_project.reading.views.articles import shelf
from redis_kit.core.web.client_address import grouped, parse
from redis_kit.pageviews import PageViews
from redis_kit.pageviews.rules import LONGEST_AGENT, is_bot, is_page_view

MOST_VISITED = 10
SENDER = "127.0.0.1"
TOLERANCE = 0.02  # of the visitors, or one visitor where that is more

RULE = """\
A page view is a GET that the site answered with a page (200, text/html). Requests by bots, recognised by their agent,
and requests that the throttle refused do not count. The site has a page for every path; the page's name is the path
without its query. A visitor is an address with an agent. The whole log counts as today."""


class Count(NamedTuple):
    """Views and unique visitors."""

    views: int
    visitors: int


class Exact:
    """Exact views and visitors by page, from each request and its answer."""

    def __init__(self) -> None:
        self.views: Counter[str] = Counter()
        self.visitors: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)

    def see(self, hit: Hit, answer: Answer) -> None:
        """Count a request if it was a page view by the kit's rules."""
        if is_page_view(hit.method, answer.status, answer.content_type, {}) and not is_bot(hit.agent):
            page = page_name(hit.target)
            self.views[page] += 1
            self.visitors[page].add(visitor(hit))

    def in_all(self) -> Count:
        """Return the count of all pages together."""
        return Count(self.views.total(), len(set().union(*self.visitors.values())))

    def most_visited(self) -> list[tuple[str, Count]]:
        """Return the counts of the most visited pages."""
        pages = self.views.most_common(MOST_VISITED)
        return [(page, Count(views, len(self.visitors[page]))) for page, views in pages]


class Row(NamedTuple):
    """The kit's count of a page, and the exact one."""

    page: str
    counted: Count
    exact: Count

    @property
    def is_right(self) -> bool:
        """Return whether the views are equal and the visitors within the tolerance."""
        off = abs(self.counted.visitors - self.exact.visitors)
        return self.counted.views == self.exact.views and off <= max(TOLERANCE * self.exact.visitors, 1)


def run_flow(session: Session, path: Path, *, rate: float) -> int:
    """Replay a log and print the comparison. Return 1 if views differ or visitors are too far off, else 0."""
    day, exact = timezone.localdate(), Exact()
    say(f"Replaying {path.name} to {session.url}, at most {rate:g} requests a second.")
    replay = Replay(session.port, path, rate=rate, seen=exact.see)
    replay.run(check=session.check)
    # When the site ends, it counts the views that it still buffers.
    session.end()
    rows = [Row("In all", counted(PageViews.site(on_failure="raise"), day), exact.in_all())]
    for page, count in exact.most_visited():
        rows.append(Row(page, counted(PageViews(page, on_failure="raise"), day), count))
    say(summary(replay))
    for line in table(rows):
        say(line)
    for line in shadow_mode.lines(path):
        say(line)
    wrong = [row.page for row in rows if not row.is_right]
    if wrong:
        say(f"\nFAILED: views must be equal, and visitors within {TOLERANCE:.0%}: {', '.join(wrong)}")
    return 1 if wrong else 0


def counted(views: PageViews, day: date) -> Count:
    """Return the kit's count since a day: today, unless the replay ran past midnight."""
    return Count(views.views(day), views.visitors(day))


def page_name(target: str) -> str:
    """Return the name under which the site counts a request."""
    path = unquote(target.partition("?")[0])
    match = resolve(path)
    return match.view_name if match.url_name not in ("articles", "library") else shelf(path[1:])


def visitor(hit: Hit) -> tuple[str, str]:
    """Return the identity of a request's visitor, as the site determines it within a day."""
    address = parse(hit.address)
    # A log may hold host names. The site does not accept these as addresses, and sees the sender, this machine.
    return (grouped(address) if address else SENDER), hit.agent[:LONGEST_AGENT]


def summary(replay: Replay) -> str:
    """Return a summary of requests and answers."""
    answers = ", ".join(f"{count:,} × {status}" for status, count in sorted(replay.statuses.items()))
    return f"""
{replay.sent:,} requests in {replay.seconds:.1f} s, {replay.sent / replay.seconds:.0f} a second.
Answers: {answers}.
Refused by the throttle: {replay.statuses[429]:,}.
Lines left out because they hold no request: {replay.unreadable:,}.

{RULE}
"""


def table(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the comparison."""
    yield f"{'':36} {'views':>7} {'exact':>7} {'error':>8}   {'visitors':>8} {'exact':>7} {'error':>8}"
    for page, counted, exact in rows:
        shown = page if len(page) <= 36 else f"{page[:16]}…{page[-19:]}"
        views = f"{counted.views:7,} {exact.views:7,} {error(counted.views, exact.views):>8}"
        visitors = f"{counted.visitors:8,} {exact.visitors:7,} {error(counted.visitors, exact.visitors):>8}"
        yield f"{shown:36} {views}   {visitors}"


def error(counted: int, exact: int) -> str:
    """Return the error of a figure in percent."""
    return f"{100 * (counted - exact) / exact:+.2f} %" if exact else "-"
