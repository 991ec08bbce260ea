"""Constant visits to the site, so that every page of the dashboard changes."""

import contextlib
import http.client
import random
import threading
from collections.abc import Callable

from demo.articles import ARTICLES
from demo.seed import PASSWORD, READERS, REFERRERS
from demo.visitor import BOT, BROWSER, Visitor

PER_SECOND = 4.0  # visits, of one request or some more
THREADS = 4
STRANGERS = 400
AGENTS = (
    BROWSER,
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Safari/605.1.15",
    "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36",
    BOT,
)
# The first articles are read more often than the last.
SHARES = [1 / place for place in range(1, len(ARTICLES) + 1)]


class Traffic:
    """Threads that each play one visitor after another, together at about five requests a second."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.over = threading.Event()
        # Readers keep their cookies, so each logs in once; an idle one costs a few hundred bytes.
        self.readers = {name: Visitor(port, address=f"203.0.113.{place}") for place, name in enumerate(READERS, 1)}
        self.threads = [threading.Thread(target=self._visit, daemon=True) for _ in range(THREADS)]

    def start(self) -> None:
        """Start the visits."""
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Start no further visits. Open ones are not waited for."""
        self.over.set()

    def _visit(self) -> None:
        while not self.over.wait(random.expovariate(PER_SECOND / THREADS)):
            # The site ends before its visitors do.
            with contextlib.suppress(OSError, http.client.HTTPException):
                act = random.choices(ACTS, WEIGHTS)[0]
                act(self)

    def stranger(self) -> Visitor:
        """Return a visitor without an account, from one of 400 addresses."""
        place = random.randrange(STRANGERS)
        visitor = Visitor(self.port, address=f"198.51.{100 + place // 200}.{place % 200}", agent=random.choice(AGENTS))
        if origin := random.choice(REFERRERS):
            visitor.headers["Referer"] = f"https://{origin}/"
        return visitor

    def reader(self) -> Visitor:
        """Return one of the readers, logged in."""
        name, visitor = random.choice(list(self.readers.items()))
        if "sessionid" not in visitor.cookies:
            visitor.log_in(name, PASSWORD)
        return visitor


def some_article() -> str:
    """Return the address of an article."""
    return f"/read/{random.choices(ARTICLES, SHARES)[0].slug}/"


def look_around(traffic: Traffic) -> None:
    """Open the list or a page of the library."""
    traffic.stranger().get(random.choice(["/", "/", f"/library/shelf-{random.randrange(20)}/"]))


def read(traffic: Traffic) -> None:
    """Open an article."""
    traffic.stranger().get(some_article())


def read_and_vote(traffic: Traffic) -> None:
    """Open an article as a reader, and vote for it."""
    reader, article = traffic.reader(), some_article()
    reader.get(article)
    reader.post(f"{article}vote/")


def vote_in_haste(traffic: Traffic) -> None:
    """Vote until it is refused."""
    stranger, article = traffic.stranger(), some_article()
    stranger.get(article)
    for _ in range(7):
        if traffic.over.is_set() or stranger.post(f"{article}vote/").status == 429:
            return


def check_in(traffic: Traffic) -> None:
    """Check in for today."""
    traffic.reader().post("/check-in/")


def have_sent(traffic: Traffic) -> None:
    """Have an article sent, and ask for a reminder."""
    article = some_article()
    traffic.reader().post(f"{article}send/")
    traffic.reader().post(f"{article}remind/", seconds=10)


def ask_for_report(traffic: Traffic) -> None:
    """Ask for the report, even while another visitor builds it."""
    traffic.reader().post("/report/")


WEIGHTED: tuple[tuple[Callable[[Traffic], None], float], ...] = (
    (read, 50),
    (look_around, 20),
    (read_and_vote, 12),
    (have_sent, 6),
    (check_in, 5),
    (vote_in_haste, 2),
    (ask_for_report, 2),
)
ACTS = [act for act, _ in WEIGHTED]
WEIGHTS = [weight for _, weight in WEIGHTED]
