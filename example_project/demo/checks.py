"""What ``rk_demo --check`` looks at, over HTTP as a visitor would. Each check is a function that returns a figure."""

import http.client
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex

from django.urls import reverse

from example_project.demo.console import say
from example_project.demo.crawl import crawl
from example_project.demo.letters import letters
from example_project.demo.run import Run
from example_project.demo.scene import ARTICLE, Scene, Wrong, expect, wait_for
from example_project.demo.seed import HISTORY, READERS
from example_project.demo.visitor import BOT

DELAY = 2
LATEST = 1.0  # seconds by which a delayed job may be late
VOTES = 5


def site_is_up(scene: Scene) -> str:
    """See the first page."""
    expect(scene.stranger(1).get("/").status == 200, "the first page is not there")
    return f"{scene.first_page:.1f} s after the start of the command"


def job_is_done(scene: Scene) -> str:
    """Have an article sent, and wait for it."""
    reader, started = scene.reader(READERS[0]), time.monotonic()
    expect(reader.post(f"{ARTICLE}send/").status == 302, "the job was not taken")
    wait_for(lambda: letters(reader, "article"), "the letter did not come")
    return f"{1000 * (time.monotonic() - started):.0f} ms from the click to the letter"


def delayed_job_is_on_time(scene: Scene) -> str:
    """Ask for a reminder, and see how late it comes."""
    reader = scene.reader(READERS[1])
    expect(reader.post(f"{ARTICLE}remind/", seconds=DELAY).status == 302, "the reminder was not taken")
    (letter,) = wait_for(lambda: letters(reader, "reminder"), "the reminder did not come")
    expect(0 <= letter.late <= LATEST, f"the reminder came {letter.late:.3f} s late")
    return f"{1000 * letter.late:.0f} ms late, {DELAY} s after it was asked for"


def lock_is_refused(scene: Scene) -> str:
    """Ask for the report while somebody else builds it, and be told who does."""
    builder, other = scene.reader(READERS[2]), scene.reader(READERS[3])
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


def vote_is_refused(scene: Scene) -> str:
    """Vote once more than is allowed."""
    voter = scene.stranger(2)
    statuses = [voter.post(f"{ARTICLE}vote/").status for _ in range(VOTES)]
    expect(statuses == [302] * VOTES, f"the first {VOTES} votes were answered with {statuses}")
    refusal = voter.post(f"{ARTICLE}vote/")
    expect(refusal.status == 429, f"vote {VOTES + 1} was answered with {refusal.status}")
    wait = refusal.headers.get("Retry-After", "")
    expect(wait.isdecimal() and 0 < int(wait) <= 60, f"Retry-After is {wait!r}")
    return f"429 to vote {VOTES + 1}, with Retry-After {wait}"


def views_match(scene: Scene) -> str:
    """Send known visitors, and a bot, to a page that nobody else knows, and read its figures."""
    path, people, times = f"/library/{token_hex(4)}/", 12, 3
    for place in range(people):
        for _ in range(times):
            expect(scene.stranger(10 + place).get(path).status == 200, f"{path} is not there")
    # A bot looks at the figures: that must not change them.
    bot = scene.stranger(9, agent=BOT)
    wanted = {"views": str(people * times), "visitors": str(people)}
    wait_for(lambda: bot.get(path).data == wanted, lambda: f"the page shows {bot.get(path).data} and not {wanted}")
    return f"{people * times} views by {people} visitors, and none by the bot"


def streak_grows(scene: Scene) -> str:
    """Check in for today, twice: the streak grows once."""
    admin = scene.admin()
    for _ in range(2):
        expect(admin.post("/check-in/").status == 302, "the check-in was not taken")
    streak = admin.get("/check-in/").data.get("streak")
    expect(streak == str(HISTORY + 1), f"the streak is {streak}, not {HISTORY + 1}")
    return f"{HISTORY} days and today make {HISTORY + 1}; a second time changes nothing"


def dashboard_is_complete(scene: Scene) -> str:
    """Open each page of the dashboard."""
    from redis_kit.dashboard.reading import panels

    pages = {reverse("admin:redis_kit_dashboard_changelist"): "Redis"}
    for panel in panels():
        pages[reverse("admin:redis_kit_dashboard_change", args=[panel.slug])] = str(panel.title)
    slowest = 0.0
    for path, title in pages.items():
        started = time.monotonic()
        answer = scene.admin().get(path)
        slowest = max(slowest, time.monotonic() - started)
        expect(answer.status == 200, f"{path} was answered with {answer.status}")
        expect(f"<h1>{title}</h1>" in answer.text, f"{path} does not say {title!r}")
        expect('class="rk-error"' not in answer.text, f"{path} shows an error")
    return f"{len(pages)} pages, the slowest in {1000 * slowest:.0f} ms"


def links_lead_somewhere(scene: Scene) -> str:
    """Follow each link of the site, as the administrator."""
    found = crawl(scene.admin())
    broken = [f"{path} ({status})" for path, status in found.items() if status >= 400]
    expect(not broken, f"broken: {', '.join(broken)}")
    return f"{len(found)} addresses"


Check = Callable[[Scene], str]
CHECKS: tuple[tuple[str, Check], ...] = (
    ("site", site_is_up),
    ("job done", job_is_done),
    ("delayed job", delayed_job_is_on_time),
    ("lock refused", lock_is_refused),
    ("throttle", vote_is_refused),
    ("views and visitors", views_match),
    ("sign-in streak", streak_grows),
    ("dashboard", dashboard_is_complete),
    ("links", links_lead_somewhere),
)


def carry_out(run: Run, first_page: float) -> int:
    """Do all checks, print a line for each, and return 1 when one failed, else 0."""
    scene, failures = Scene(run.port, first_page), []
    for title, check in CHECKS:
        run.check()
        try:
            result, figure = "ok", check(scene)
        except (Wrong, OSError, http.client.HTTPException) as error:
            result, figure = "FAILED", str(error) or repr(error)
            failures.append(title)
        say(f"{title:20} {result:7} {figure}")
    if failures:
        say(f"\n{len(failures)} of {len(CHECKS)} checks failed: {', '.join(failures)}.")
        return 1
    say(f"\nAll {len(CHECKS)} checks passed.")
    return 0
