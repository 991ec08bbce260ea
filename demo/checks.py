"""The checks of ``rk_demo --check``, over HTTP as a visitor. Each is a function that returns a figure."""

import http.client
import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import NamedTuple, TypeVar

from django.urls import reverse

from demo.articles import ARTICLES
from demo.console import say
from demo.crawler import crawl
from demo.seed import ADMIN, HISTORY, PASSWORD, READERS, author_names
from demo.session import Session
from demo.visitor import BOT, BROWSER, Visitor

ARTICLE = f"/read/{ARTICLES[0].slug}/"
LETTER = re.compile(r'<span class="chip (\w+)">.*?<data value="(-?[\d.]+)">', re.DOTALL)
TIMEOUT = 15.0  # seconds for something to happen
DELAY = 2
MAX_DELAY = 1.0  # seconds by which a delayed job may be late
VOTES = 5
Answer = TypeVar("Answer")


class CheckFailed(Exception):
    """A check failed; the message says why."""


class Site:
    """The site and its visitors."""

    def __init__(self, port: int, first_page: float) -> None:
        self.port, self.first_page = port, first_page
        self.readers: dict[str, Visitor] = {}

    def stranger(self, place: int, agent: str = BROWSER) -> Visitor:
        """Return a visitor with its own address."""
        return Visitor(self.port, address=f"192.0.2.{place}", agent=agent)

    def reader(self, name: str, password: str = PASSWORD) -> Visitor:
        """Return a reader who is logged in."""
        if name not in self.readers:
            reader = self.stranger(200 + len(self.readers))
            expect(reader.log_in(name, password), f"{name} could not log in")
            self.readers[name] = reader
        return self.readers[name]

    def admin(self) -> Visitor:
        """Return the administrator."""
        return self.reader(ADMIN, ADMIN)


class Letter(NamedTuple):
    """A row of the page of letters; ``late`` is in seconds."""

    kind: str
    late: float


def site_is_up(site: Site) -> str:
    """Open the first page."""
    expect(site.stranger(1).get("/").status == 200, "the first page is not there")
    return f"{site.first_page:.1f} s after the start of the command"


def job_is_done(site: Site) -> str:
    """Have an article sent, and wait for it."""
    reader, started = site.reader(READERS[0]), time.monotonic()
    expect(reader.post(f"{ARTICLE}send/").status == 302, "the job was not taken")
    wait_for(lambda: letters(reader, "article"), "the letter did not come")
    return f"{1000 * (time.monotonic() - started):.0f} ms from the click to the letter"


def delayed_job_is_on_time(site: Site) -> str:
    """Ask for a reminder, and measure how late it comes."""
    reader = site.reader(READERS[1])
    expect(reader.post(f"{ARTICLE}remind/", seconds=DELAY).status == 302, "the reminder was not taken")
    (letter,) = wait_for(lambda: letters(reader, "reminder"), "the reminder did not come")
    expect(0 <= letter.late <= MAX_DELAY, f"the reminder came {letter.late:.3f} s late")
    return f"{1000 * letter.late:.0f} ms late, {DELAY} s after the request"


def lock_is_refused(site: Site) -> str:
    """Ask for the report while another reader builds it: the answer names the holder."""
    builder, other = site.reader(READERS[2]), site.reader(READERS[3])
    named = f'<strong id="holder">{READERS[2]}</strong>'
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(builder.post, "/report/")
        wait_for(lambda: named in other.get("/report/").text, "the page does not say who builds the report")
        refusal = other.post("/report/")
        built = building.result()
    expect(refusal.status == 409, f"the second builder was answered with {refusal.status}")
    expect(named in refusal.text, "the refusal does not say who builds the report")
    expect(built.status == 302, f"the first builder was answered with {built.status}")
    return f"409 while {READERS[2]} was building"


def log_is_shown(site: Site) -> str:
    """Find the line about that refusal on the dashboard, with the path of its request."""
    path, line = reverse("admin:redis_kit_dashboard_change", args=["logs"]), "The report is already being built by"
    started = time.monotonic()
    wait_for(lambda: line in site.admin().get(path).text, "the line is not on the page")
    shown = time.monotonic() - started
    expect("/report/" in site.admin().get(path).text, "the line does not say which page was asked for")
    return f"on the dashboard {1000 * shown:.0f} ms later, with its path"


def vote_is_refused(site: Site) -> str:
    """Vote one time more than is allowed."""
    voter = site.stranger(2)
    statuses = [voter.post(f"{ARTICLE}vote/").status for _ in range(VOTES)]
    expect(statuses == [302] * VOTES, f"the first {VOTES} votes were answered with {statuses}")
    refusal = voter.post(f"{ARTICLE}vote/")
    expect(refusal.status == 429, f"vote {VOTES + 1} was answered with {refusal.status}")
    wait = refusal.headers.get("Retry-After", "")
    expect(wait.isdecimal() and 0 < int(wait) <= 60, f"Retry-After is {wait!r}")
    return f"429 to vote {VOTES + 1}, with Retry-After {wait}"


def views_match(site: Site) -> str:
    """Send visitors and a bot to a page that nobody else knows, and compare its figures."""
    path, people, times = f"/library/{token_hex(4)}/", 12, 3
    for place in range(people):
        for _ in range(times):
            expect(site.stranger(10 + place).get(path).status == 200, f"{path} is not there")
    # A bot reads the figures: that must not change them.
    bot = site.stranger(9, agent=BOT)
    wanted = {"views": str(people * times), "visitors": str(people)}
    wait_for(lambda: bot.get(path).data == wanted, lambda: f"the page shows {bot.get(path).data} and not {wanted}")
    return f"{people * times} views by {people} visitors; the bot does not count"


def streak_grows(site: Site) -> str:
    """Check in for today, twice: the streak grows once."""
    admin = site.admin()
    for _ in range(2):
        expect(admin.post("/check-in/").status == 302, "the check-in was not taken")
    streak = admin.get("/check-in/").data.get("streak")
    expect(streak == str(HISTORY + 1), f"the streak is {streak}, not {HISTORY + 1}")
    return f"{HISTORY} days and today make {HISTORY + 1}; a second check-in changes nothing"


def dashboard_is_complete(site: Site) -> str:
    """Open each page of the dashboard."""
    from redis_kit.dashboard.collect import panels

    pages = {reverse("admin:redis_kit_dashboard_changelist"): "Dashboard"}
    for panel in panels():
        pages[reverse("admin:redis_kit_dashboard_change", args=[panel.slug])] = str(panel.title)
    slowest = 0.0
    for path, title in pages.items():
        started = time.monotonic()
        answer = site.admin().get(path)
        slowest = max(slowest, time.monotonic() - started)
        expect(answer.status == 200, f"{path} was answered with {answer.status}")
        expect(f"<h1>{title}</h1>" in answer.text, f"{path} does not say {title!r}")
        expect('class="rk-error"' not in answer.text, f"{path} shows an error")
    return f"{len(pages)} pages, the slowest in {1000 * slowest:.0f} ms"


def links_lead_somewhere(site: Site) -> str:
    """Follow each link of the site, as the administrator."""
    statuses = crawl(site.admin())
    broken = [f"{path} ({status})" for path, status in statuses.items() if status >= 400]
    expect(not broken, f"broken: {', '.join(broken)}")
    return f"{len(statuses)} addresses"


def unknown_articles_are_refused(site: Site) -> str:
    """Ask for articles that do not exist, and for one that does; it is marked as read from then on."""
    reader, unknown = site.reader(READERS[2]), 50
    statuses = {site.stranger(3).get(f"/read/{token_hex(4)}/").status for _ in range(unknown)}
    expect(statuses == {404}, f"unknown articles were answered with {statuses}")
    expect('class="read"' not in reader.get("/").text, "an article that nobody opened is marked as read")
    expect(reader.get(ARTICLE).status == 200, "an article that exists is not there")
    expect(reader.get("/").text.count('class="read"') == 1, "the article is not marked as read")
    page = site.admin().get(f"{reverse('admin:redis_kit_dashboard_changelist')}filters/").text
    expect("reading.article.slug" in page and "complete" in page, "the filter of articles is not complete")
    return f"404 to {unknown} unknown articles; one is marked as read"


def author_is_found(site: Site) -> str:
    """Type a part of a name where an article's author is chosen, as the administrator."""
    field = "app_label=reading&model_name=article&field_name=author"
    answer = site.admin().get(f"{reverse('admin:autocomplete')}?{field}&term=mull+ad")
    expect(answer.status == 200, f"the search was answered with {answer.status}")
    names = [author["text"] for author in json.loads(answer.text)["results"]]
    expect(names == ["Ada Müller"], f"the search found {names}")
    page = site.admin().get(f"{reverse('admin:redis_kit_dashboard_changelist')}autocomplete/").text
    expect("reading.author" in page and "complete" in page, "the index of authors is not complete")
    return f"1 of {len(author_names())} authors"


def articles_are_found(site: Site) -> str:
    """Search for a word of an article, with an error in it: the word is marked."""
    stranger, started = site.stranger(4), time.monotonic()
    answer = stranger.get("/search/?q=many+porcesses")
    duration = time.monotonic() - started
    expect(answer.status == 200, f"the search was answered with {answer.status}")
    expect("<mark>processes</mark>" in answer.text.lower(), "no word is marked")
    expect("limited at the moment" not in answer.text, "the index did not answer")
    expect("0 articles" in stranger.get("/search/?q=zzzz").text, "a word that is nowhere was found")
    page = site.admin().get(f"{reverse('admin:redis_kit_dashboard_changelist')}search/").text
    expect("reading.ArticleIndex" in page and "zzzz" in page, "the page about search lacks the index or the query")
    return f"a misspelt word, marked, in {1000 * duration:.0f} ms"


def message_arrives(site: Site) -> str:
    """Say something in the chat while another reader waits, and look at the bell that the letters rang."""
    writer, reader, body = site.reader(READERS[0]), site.reader(READERS[1]), f"<b>{token_hex(4)}</b>"
    for visitor in (writer, reader):
        expect(visitor.get("/talk/").status == 200, "the chat is not there")
    last = json.loads(reader.get("/talk/feed/").text)["last"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(reader.get, f"/talk/feed/?after={last}&timeout=10")
        time.sleep(0.3)
        started = time.monotonic()
        sent = writer.send_json("/talk/feed/", {"body": body, "client_id": body})
        arrived = waiting.result()
    expect(sent.status == 200, f"the message was answered with {sent.status}")
    expect([each["body"] for each in json.loads(arrived.text)["messages"]] == [body], "the message did not arrive")
    repeated = writer.send_json("/talk/feed/", {"body": body, "client_id": body})
    expect(repeated.text == sent.text, "the repeated message was sent twice")
    expect(site.stranger(4).get("/talk/feed/").status == 403, "a stranger may read the chat")
    notes = json.loads(writer.get("/bell/feed/").text)["messages"]
    expect(any(note["body"].startswith("Your letter is here") for note in notes), "the bell did not ring for a letter")
    return f"in {1000 * (time.monotonic() - started):.0f} ms at a reader who waits; sent twice, it arrives once"


Check = Callable[[Site], str]
CHECKS: tuple[tuple[str, Check], ...] = (
    ("site", site_is_up),
    ("job done", job_is_done),
    ("delayed job", delayed_job_is_on_time),
    ("lock refused", lock_is_refused),
    ("log", log_is_shown),
    ("throttle", vote_is_refused),
    ("views and visitors", views_match),
    ("sign-in streak", streak_grows),
    ("chat and bell", message_arrives),
    ("unknown articles", unknown_articles_are_refused),
    ("autocomplete", author_is_found),
    ("search", articles_are_found),
    ("dashboard", dashboard_is_complete),
    ("links", links_lead_somewhere),
)


def run_flow(session: Session, first_page: float) -> int:
    """Run all checks, print a line for each, and return 1 if one failed, else 0."""
    site, failures = Site(session.port, first_page), []
    for title, check in CHECKS:
        session.check()
        try:
            result, figure = "ok", check(site)
        except (CheckFailed, OSError, http.client.HTTPException) as error:
            result, figure = "FAILED", str(error) or repr(error)
            failures.append(title)
        say(f"{title:20} {result:7} {figure}")
    if failures:
        say(f"\n{len(failures)} of {len(CHECKS)} checks failed: {', '.join(failures)}.")
        return 1
    say(f"\nAll {len(CHECKS)} checks passed.")
    return 0


def letters(reader: Visitor, kind: str) -> list[Letter]:
    """Return a reader's letters of a kind, the newest first."""
    all_letters = [Letter(name, float(late)) for name, late in LETTER.findall(reader.get("/letters/").text)]
    return [letter for letter in all_letters if letter.kind == kind]


def expect(condition: object, message: str | Callable[[], str]) -> None:
    """Raise CheckFailed unless the condition holds."""
    if not condition:
        raise CheckFailed(message if isinstance(message, str) else message())


def wait_for(condition: Callable[[], Answer], message: str | Callable[[], str]) -> Answer:
    """Return the condition's first true answer. Raises CheckFailed if there is none within 15 seconds."""
    deadline = time.monotonic() + TIMEOUT
    while not (result := condition()):
        expect(time.monotonic() < deadline, message)
        time.sleep(0.02)
    return result
