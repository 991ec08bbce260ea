"""A flood of hostile requests: it mints a bounded number of keys, and leaves nothing of its sender in Redis.

``python -m tests.chaos pageviews.flood 100000`` sends 100,000 requests through the middleware of a small site, and
prints the number of keys and their memory. There must not be more keys than there may be, and the dump of the server
must hold no address, session, cookie, agent or path.
"""

import logging
import random
import time
from dataclasses import dataclass
from pathlib import Path

from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import path

from redis_kit.pageviews import PageViews, dropped, flush, page
from redis_kit.pageviews.buffer import buffer
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import stage

MAX_PAGES = 50
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
SECRETS = ("203.0.113.", "2001:db8:", "secret-session", "secret-cookie", "secret-agent", "secret-path", "secret-query")
FAMILIES = 17  # keys of one name within two hours: hashes, sketches but those of minutes, lists, batches
MINUTES = 11  # sketches of a name that live at the same time


@page(lambda request, slug: ("article", slug))
def article(request, slug):
    """A careless view: it serves any slug, so anybody can name an object."""
    return HttpResponse("<p>Hello")


def html(request, number=0):
    return HttpResponse("<p>Hello")


urlpatterns = [
    path("", html, name="front"),
    path("news/<int:number>/", html, name="news"),
    path("a/<slug:slug>/", article),
]


def request(chance):
    """Return the path and the headers of one request."""
    token = f"{chance.getrandbits(64):x}"
    target = chance.choice((f"/secret-path-{token}", f"/news/{chance.getrandbits(40)}/", "/", f"/a/slug-{token}/"))
    target += chance.choice(("", f"?secret-query={token}&utm_source={token}&utm_medium=x"))
    headers = {
        "user-agent": chance.choice((BROWSER, f"{BROWSER} secret-agent-{token}", "curl/8", f"x{token}bot")),
        "referer": chance.choice(("", f"https://{token}.example/secret-path", "https://" + "y" * 3000, "http://[::1")),
        "x-forwarded-for": f"203.0.113.{chance.randrange(256)}",
        "cookie": f"sessionid=secret-session-{token}; rk_visitor=secret-cookie-{token}",
        "sec-purpose": chance.choice(("", "prefetch")),
    }
    return target, {name: text for name, text in headers.items() if text}


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many requests are sent."""

    count: int


def run(plan):
    """Send the requests on a server of its own; then look at its keys and its dump."""
    middleware = ["redis_kit.pageviews.middleware.PageViewMiddleware"]
    logging.getLogger("django.request").setLevel(logging.ERROR)
    with (
        override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=middleware),
        stage(READ_TIMEOUT=5.0, PAGEVIEWS={"MAX_PAGES": MAX_PAGES}) as place,
        place.server.client() as admin,
    ):
        answered = send(plan.count, plan.seed)
        keys, memory = admin.dbsize(), admin.info("memory")["used_memory_dataset"]
        found = {"too many": [f"{keys} keys of at most {most_keys()}"] if keys > most_keys() else []}
        found["traces"] = traces(place.server)
        other = PageViews("article", "(other)").views() + PageViews("(other)").views()
        views = PageViews.site(on_failure="raise").views()
    answers = f"{plan.count:,} requests, {answered:,} answered with 200; {dropped()}"
    counts = f"{views:,} views, {other:,} of (other); {keys:,} keys of at most {most_keys():,}; {memory:,} bytes"
    return Outcome(f"{answers}; {counts}", found)


def send(count, seed):
    """Send the requests, and return how many of them were answered with 200."""
    chance, client, answered = random.Random(seed), Client(), 0
    for number in range(count):
        target, headers = request(chance)
        address = f"203.0.113.{chance.randrange(256)}" if number % 2 else f"2001:db8:{chance.getrandbits(16):x}::1"
        answered += client.get(target, headers=headers, REMOTE_ADDR=address).status_code == 200
        if buffer.waiting > 5000:
            flush()
    deadline = time.monotonic() + 30
    while not flush() and time.monotonic() < deadline:
        time.sleep(0.05)
    return answered


def most_keys():
    """Return how many keys there may be: names admitted, their pages' rests, and the site."""
    return (MAX_PAGES + 3) * (FAMILIES + MINUTES) + 2


def traces(server):
    """Return the secrets that the server's dump holds."""
    with server.client() as admin:
        admin.config_set("rdbcompression", "no")
        admin.save()
        dump = Path(admin.config_get("dir")["dir"], admin.config_get("dbfilename")["dbfilename"]).read_bytes()
    assert b"article" in dump
    return [secret for secret in SECRETS if secret.encode() in dump]
