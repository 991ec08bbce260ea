import asyncio
import logging
import random
import socket
import threading
import time
from itertools import count
from urllib.parse import quote, urlencode

import pytest
from asgiref.sync import SyncToAsync
from django.core.cache import cache
from django.http import HttpResponse
from django.test import AsyncClient, Client, RequestFactory
from hypothesis import given, settings
from hypothesis import strategies as st

from redis_kit.core import primitive
from redis_kit.core.client import single
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.pageviews import OTHER, PageViews, dropped, flush
from redis_kit.pageviews.buffer import Dropped, buffer
from redis_kit.pageviews.middleware import PageViewMiddleware, campaign, referring_host
from redis_kit.pageviews.periods import now
from tests.app.models import User
from tests.fixtures.servers import wait_for
from tests.pageviews.urls import BROWSER

SESSIONS = "django.contrib.sessions.middleware.SessionMiddleware"
USERS = "django.contrib.auth.middleware.AuthenticationMiddleware"


@pytest.fixture(params=["sync", "async"])
def get(request, site):
    """Get a page as a browser, through WSGI or ASGI, and return its response."""
    with asyncio.Runner() as runner:

        def get_page(path, *, agent=BROWSER, method="get", client=None, **headers):
            headers = {"user-agent": agent, **{name.replace("_", "-"): value for name, value in headers.items()}}
            if request.param == "sync":
                return getattr(client or Client(), method)(path, headers=headers)
            return runner.run(getattr(client or AsyncClient(), method)(path, headers=headers))

        get_page.client = Client() if request.param == "sync" else AsyncClient()
        yield get_page


def top():
    assert flush()
    return dict(PageViews.site().top())


def test_page_is_named_by_its_url_name_or_pattern(get):
    paths = ["/", "/html/1/", "/html/2/", "/async/", "/old/", "/older/", "/blog/latest/", "/stream/"]
    for path in paths:
        assert get(path).status_code == 200
    assert top() == {"by-name": 2, "/^(?:old|older)/$": 2, "/": 1, "async": 1, "blog:latest": 1, "stream": 1}


def test_project_can_name_the_page(get):
    for path in (
        "/named/",
        "/shop/",
        "/market/",
        "/plain/",
        "/uncounted/",
        "/post/7/",
        "/post/7/",
        "/post/8/",
        "/article/a-b/",
    ):
        assert get(path).status_code == 200
    assert top() == {"front": 1, "shop": 1, "market": 1, "plain": 1, "post": 3, "article": 1}
    assert PageViews("post").top() == [("7", 2), ("8", 1)]
    assert PageViews("post", 7).views() == 2
    assert PageViews("article", "a-b").views() == 1
    assert PageViews.site().views() == 8


def test_mixin_takes_positional_arguments_and_sets_its_view_up(get):
    for path in ("/shop/7/", "/archive/2026/"):
        assert get(path).status_code == 200
    assert top() == {"shop": 1, "archive": 1}
    assert PageViews("archive").top() == [("2026", 1)]


def test_only_page_views_are_counted(get):
    for path in ("/json/", "/missing/", "/nowhere/", "/failing/", "/empty/", "/changed/", "/login/"):
        get(path)
    get("/", method="post")
    get("/", method="head")
    get("/", agent="curl/8.5.0")
    get("/", agent="")
    get("/", sec_purpose="prefetch;prerender")
    get("/", sec_fetch_dest="empty")
    assert top() == {}
    assert dropped() == (0, 0, 0, 0)


def test_origin_of_a_visit_and_bots_are_noted(get, monkeypatch):
    monkeypatch.setattr(buffer, "_start", lambda: None)
    get("/named/?utm_source=news&utm_medium=mail", referer="https://www.search.example/?q=private")
    get("/named/?q=private", referer="http://testserver/post/7/")
    get("/named/", agent="curl/8.5.0", As="anna")
    get("/json/", agent="curl/8.5.0")
    seen = [(event.page, event.referrer, event.campaign, event.bot) for event in buffer._events]
    assert seen == [
        ("front", "search.example", "news / mail / -", False),
        ("front", "", "", False),
        ("front", "", "", True),
    ]
    assert not buffer._events[-1].visitor
    assert top() == {"front": 2}


def test_staff_and_visitors_who_opt_out_are_left_out_by_settings(get, site):
    def visit():
        get("/", As="anna staff")
        get("/", As="bert")
        get("/", Sec_GPC="1")
        get("/", DNT="1")
        return sum(top().values())

    assert visit() == 4
    site.options(PAGEVIEWS={"EXCLUDE_STAFF": True})
    assert visit() - 4 == 3
    site.options(PAGEVIEWS={"RESPECT_OPT_OUT": True})
    assert visit() - 7 == 2


@pytest.mark.parametrize(
    ("mode", "visitors"), [("daily_salt", 3), ("session", 2), ("user", 2), ("cookie", 6)], ids=lambda value: str(value)
)
def test_visitors_are_distinguished(get, site, monkeypatch, mode, visitors):
    # Of six random ones a sketch takes two for one, once in a thousand times.
    numbers = count()
    monkeypatch.setattr("redis_kit.pageviews.middleware.token_urlsafe", lambda size: f"{next(numbers):022}")
    site.options(PAGEVIEWS={"VISITOR": mode})
    get("/", As="anna")
    get("/", As="anna")
    get("/", As="bert", agent=f"{BROWSER} 2")
    get("/", As="bert", agent=f"{BROWSER} 3")
    get("/")
    get("/")
    assert top() == {"/": 6}
    assert PageViews("/").visitors() == PageViews.site().visitors() == visitors


@pytest.mark.django_db(transaction=True)
def test_users_and_sessions_of_django_are_visitors(get, site, settings):
    settings.MIDDLEWARE = [settings.MIDDLEWARE[0], SESSIONS, USERS]
    user = User.objects.create(username="anna", is_staff=True)
    get.client.force_login(user)
    for mode in ("user", "session"):
        site.options(PAGEVIEWS={"VISITOR": mode})
        get("/named/", client=get.client)
        get("/named/")
    assert top() == {"front": 4}
    assert PageViews("front").visitors() == 2
    site.options(PAGEVIEWS={"EXCLUDE_STAFF": True})
    get("/named/", client=get.client)
    assert top() == {"front": 4}


def test_cookie_is_signed_and_stored_by_the_browser(get, site):
    site.options(PAGEVIEWS={"VISITOR": "cookie"})
    first = get("/", client=get.client)
    cookie = first.cookies["rk_visitor"]
    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "Lax", 365 * 86_400)
    assert "rk_visitor" not in get("/", client=get.client).cookies
    top()
    assert PageViews("/").visitors() == 1
    token, _, signature = cookie.value.partition(".")
    forged = ["x" * 10_000, f"{token[:-1]}~.{signature}", f"{token}.{signature[:-1]}~", f"{token}.", "é" * 45]
    for value in forged:
        get.client.cookies["rk_visitor"] = value
        assert "rk_visitor" in get("/", client=get.client).cookies
    top()
    assert PageViews("/").visitors() == 1 + len(forged)


@pytest.mark.parametrize(
    ("headers", "is_shared"),
    [
        ({}, False),
        ({"Cache-Control": "private, max-age=600"}, False),
        ({"Cache-Control": "max-age=600, no-store"}, False),
        ({"Cache-Control": "no-cache"}, False),
        ({"Cache-Control": "max-age=600"}, True),
        ({"Cache-Control": "Public, max-age=600"}, True),
        ({"Cache-Control": "s-maxage=600, private"}, True),
        ({"Expires": "Wed, 22 Nov 2056 10:00:00 GMT"}, True),
    ],
    ids=str,
)
def test_response_that_shared_caches_may_store_has_no_cookie(get, site, headers, is_shared):
    site.options(PAGEVIEWS={"VISITOR": "cookie"})
    path = f"/with-headers/?{urlencode(headers)}"
    first = get(path)
    assert ("rk_visitor" in first.cookies) is (not is_shared)
    assert ("Cookie" in first.headers.get("Vary", "")) is (not is_shared)
    get("/", client=get.client)
    again = get(path, client=get.client)
    assert "rk_visitor" not in again.cookies
    assert again.headers.get("Vary") == first.headers.get("Vary")
    top()
    assert (PageViews("with-headers").views(), PageViews("with-headers").visitors()) == (2, 1 if is_shared else 2)


def test_nothing_of_a_visitor_is_stored(get, site):
    for mode in ("daily_salt", "session", "user", "cookie"):
        site.options(PAGEVIEWS={"VISITOR": mode})
        get("/", As="anna")
    top()
    keys = site.keys()
    stored = b"".join(key.encode() + (site.server.client(decode_responses=False).dump(key) or b"") for key in keys)
    for text in (b"127.0.0.1", b"Mozilla", b"anna"):
        assert text not in stored


def test_error_in_the_projects_callable_is_logged_and_the_page_served(get, caplog):
    assert get("/broken/").status_code == 200
    assert get("/misnamed/").status_code == 200
    assert dropped().failed == 2
    assert [record.levelno for record in caplog.records if record.name == "redis_kit.pageviews"] == [logging.ERROR] * 2
    assert top() == {}


@pytest.mark.parametrize(
    "meta",
    [
        {"REMOTE_ADDR": ""},
        {"REMOTE_ADDR": "nowhere"},
        {"HTTP_USER_AGENT": "x" * 100_000},
        {"HTTP_USER_AGENT": "\udcff"},
        {"QUERY_STRING": "\udcff"},
        {"PATH_INFO": "/html/1/" + "x" * 100_000},
        {"PATH_INFO": "/\r\nSet-Cookie: a=b"},
        {"REQUEST_METHOD": "\x00GARBAGE"},
        {"HTTP_COOKIE": "rk_visitor=" + "x" * 100_000},
    ],
    ids=lambda meta: next(iter(meta)),
)
@pytest.mark.parametrize("mode", ["daily_salt", "session", "user", "cookie"])
def test_unusual_request_is_served(site, meta, mode):
    site.options(PAGEVIEWS={"VISITOR": mode})
    response = Client().get("/", **{"HTTP_USER_AGENT": BROWSER, **meta})
    assert response.status_code in (200, 404, 405)
    flush()
    assert len(site.keys()) <= 24


def test_paths_queries_and_headers_make_no_keys(get, site):
    chance = random.Random(7)

    def noise(length):
        return "".join(chance.choices("abc/%:{}*?[]\\~. é\t", k=length))

    def ask(path):
        headers = {"X-Moz": noise(5), "Accept-Language": noise(50), "Purpose": noise(9), "Sec-Purpose": noise(9)}
        get(path, referer=f"https://{noise(30)}/", **headers)

    for number in range(50):
        ask(f"/{quote(noise(30))}/")
        ask(f"/nowhere/{number}/?{quote(noise(30))}")
        ask(f"/html/{number}/?{quote(noise(30))}={number}&utm_source={quote(noise(300))}")
        ask(f"/named/?page={number}")
    pages = set(top())
    assert pages - {"/"} == {"by-name", "front"}  # "//host//" is a path of the first page
    before = len(site.keys())
    for path in ("/", "/html/1/?utm_source=other", "/named/"):
        get(path, referer="https://other.example/")
    top()
    assert len(site.keys()) <= before + 20  # no more than a page, an hour and a list each


def test_async_middleware_uses_no_thread(site, monkeypatch):
    async def answer(request):
        return HttpResponse("<p>Hello")

    def hop(*args, **options):
        raise AssertionError("a thread was asked")

    async def count(mode, write):
        site.options(PAGEVIEWS={"VISITOR": mode, "WRITE": write})
        request = RequestFactory().get("/named/", headers={"user-agent": BROWSER, "referer": "https://a.example/"})
        with monkeypatch.context() as patched:
            patched.setattr(SyncToAsync, "__call__", hop)
            patched.setattr(asyncio.get_running_loop(), "run_in_executor", hop)
            await PageViewMiddleware(answer)(request)

    for mode in ("daily_salt", "session", "cookie"):
        for write in ("buffer", "sync"):
            asyncio.run(count(mode, write))
    assert dropped() == (0, 0, 0, 0)
    assert top() == {"front": 6}


def test_answers_of_a_middleware_to_paths_without_a_view_count_together(get, settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "tests.pageviews.urls.flat_pages"]
    for path in ("/flat/one/", "/flat/two/", "/nowhere/"):
        get(path)
    assert top() == {OTHER: 2}
    assert dropped() == (0, 0, 0, 0)


def test_page_from_the_cache_counts(site, settings):
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "views"}}
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE,
        "django.middleware.cache.UpdateCacheMiddleware",
        "django.middleware.cache.FetchFromCacheMiddleware",
    ]
    cache.clear()
    for _ in range(3):
        Client().get("/html/1/", headers={"user-agent": BROWSER})
    assert top() == {"by-name": 3}


def test_navigation_to_an_unchanged_page_counts(get, settings):
    settings.MIDDLEWARE = [settings.MIDDLEWARE[0], "django.middleware.http.ConditionalGetMiddleware"]
    etag = get("/html/1/").headers["ETag"]
    for headers, views in (
        ({"sec_fetch_dest": "document"}, 2),
        ({}, 2),
        ({"sec_fetch_dest": "empty"}, 2),
        ({"sec_fetch_dest": "document", "sec_purpose": "prefetch"}, 2),
    ):
        assert get("/html/1/", if_none_match=etag, **headers).status_code == 304
        assert top() == {"by-name": views}
    settings.MIDDLEWARE = settings.MIDDLEWARE[::-1]
    assert get("/html/1/", if_none_match=etag).status_code == 304
    assert top() == {"by-name": 3}


def test_view_is_counted_within_two_seconds_by_itself(get):
    get("/named/")
    wait_for(lambda: PageViews("front").views() == 1, timeout=5)


def test_with_write_sync_the_view_counts_before_the_answer(get, site):
    site.options(PAGEVIEWS={"WRITE": "sync"})
    get("/post/7/")
    assert (PageViews.site().views(), PageViews("post").views(), PageViews("post", 7).visitors()) == (1, 1, 1)
    site.connect({"URL": "redis://127.0.0.1:1/0"}, PAGEVIEWS={"WRITE": "sync", "ON_FAILURE": "raise"})
    assert get("/post/7/").status_code == 200
    assert dropped() == (0, 1, 0, 0)


def test_view_that_write_sync_drops_is_counted_by_reason_and_logged_once(get, site, caplog, monkeypatch):
    monkeypatch.setattr(primitive, "_log_limit", LogRateLimit())
    site.options(PAGEVIEWS={"WRITE": "sync"})
    site.client.lpush(PageViews("post").key(f"views:{now():%Y-%m}"), "x")
    for _ in range(3):
        assert get("/post/7/").status_code == 200
    site.client.acl_setuser(
        "counter", enabled=True, nopass=True, keys=["*"], categories=["+@all"], commands=["-hincrby"]
    )
    try:
        url = f"{site.url.partition('?')[0]}?db=0&username=counter&password=x"
        site.connect({"URL": url}, PAGEVIEWS={"WRITE": "sync"})
        for _ in range(2):
            assert get("/named/").status_code == 200
    finally:
        site.connect(site.server.connection)
        site.client.acl_deluser("counter")
    assert dropped() == Dropped(overflow=0, outage=2, refused=3, failed=0)
    assert PageViews("post", 7).views() == 3
    lines = [one.message for one in caplog.records if one.name in ("redis_kit", "redis_kit.pageviews")]
    assert len([line for line in lines if "is a list in place of a hash" in line]) == 1
    assert len([line for line in lines if "(policy 'open'): Redis refused access" in line]) == 1


def test_outage_delays_no_page(get, site):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        site.connect({"URL": f"redis://127.0.0.1:{silent.getsockname()[1]}/0"}, READ_TIMEOUT=10)
        begin = time.monotonic()
        assert [get("/").status_code for _ in range(21)] == [200] * 21
        assert time.monotonic() - begin < 9  # a page that waits for an answer takes 10 s
    site.connect(site.server.connection)
    assert top() == {"/": 21}


@pytest.fixture
def trips(monkeypatch):
    """The round trips of this thread, by the name of the client's method."""
    made, here = [], threading.get_ident()

    def noted(method):
        def call(*args):
            if threading.get_ident() == here:
                made.append(method.__name__)
            return method(*args)

        return call

    for client in (single.Client, single.AsyncClient):
        for name in ("call", "batch", "block"):
            monkeypatch.setattr(client, name, noted(getattr(client, name)))
    return made


@pytest.mark.parametrize(("write", "most"), [("buffer", (0, 0)), ("sync", (2, 1))])
def test_request_takes_one_round_trip_and_two_for_a_new_page(get, site, trips, write, most):
    site.options(PAGEVIEWS={"WRITE": write, "MAX_PAGES": 5})
    PageViews("before").add()  # the server has the scripts from now on
    trips.clear()
    new, known = most
    for path, allowed in (
        ("/post/1/", new),
        ("/post/1/", known),
        ("/post/2/", new),
        ("/named/", new),
        ("/named/", known),
    ):
        get(path)
        assert len(trips) <= allowed
        trips.clear()
    get("/reported/4/")  # the day is full
    assert len(trips) <= new
    trips.clear()
    get("/named/", agent="curl/8.5.0")
    assert len(trips) <= known


@pytest.mark.parametrize("write", ["buffer", "sync"])
def test_pages_beyond_the_limit_are_counted_together(get, site, write):
    site.options(PAGEVIEWS={"MAX_PAGES": 4, "WRITE": write})
    for number in range(10):
        get(f"/post/{number}/")
    get("/named/")
    assert top() == {"post": 10, OTHER: 1}
    assert sum(views for _, views in PageViews("post").top()) == 10
    assert dict(PageViews("post").top()) == {"0": 1, "1": 1, "2": 1, OTHER: 7}
    assert PageViews("post", OTHER).views() == 7
    assert PageViews(OTHER).views() == 1


def test_counting_costs_a_request_little(site):
    response = Client().get("/html/1/", headers={"user-agent": BROWSER})
    request = RequestFactory().get("/html/1/", headers={"user-agent": BROWSER})
    request.resolver_match = response.resolver_match
    middleware, bare = PageViewMiddleware(lambda request: response), lambda request: response

    def cost(call):
        begin = time.thread_time()
        for _ in range(300):
            call(request)
        return (time.thread_time() - begin) / 300

    cost(middleware)
    assert min(cost(middleware) for _ in range(10)) - min(cost(bare) for _ in range(10)) < 100e-6


@pytest.mark.parametrize(
    ("referrer", "host"),
    [
        ("https://www.google.com/", "google.com"),
        ("https://News.Example:8443/story?id=1#top", "news.example"),
        ("http://anna:secret@forum.example/thread", "forum.example"),
        ("https://forum.example", "forum.example"),
        ("https://shop.example/cart", ""),
        ("https://www.shop.example:8000/cart", ""),
        ("", ""),
        ("about:blank", ""),
        ("android-app://com.example/", ""),
        ("javascript:alert(1)", ""),
        ("https://", ""),
        ("https://<script>/", ""),
        ("https://a b/", ""),
        ("https://exa\r\nmple/", ""),
        ("https://forum.example/" + "x" * 3000, ""),
    ],
)
def test_host_of_another_site_is_where_a_visitor_comes_from(referrer, host):
    assert referring_host(referrer, "shop.example:8000") == host


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("utm_source=News&utm_medium=email&utm_campaign=may", "news / email / may"),
        ("id=1&utm_source=news", "news / - / -"),
        ("utm_source=a%20b%3Cscript%3E&utm_campaign=%E4%BA%94%E6%9C%88", "a b script / - / 五月"),
        ("utm_source=" + "x" * 100, "x" * 30 + " / - / -"),
        ("utm_medium=email", ""),
        ("utm_source=", ""),
        ("", ""),
        ("utm_source=a&" * 60, ""),
        ("utm_source=a&x=" + "y" * 3000, ""),
    ],
)
def test_campaign_is_named_by_a_link(query, named):
    assert campaign(query) == named


@settings(max_examples=30)
@given(st.text(), st.text())
def test_any_text_gives_a_short_one(text, host):
    assert len(referring_host(f"https://{text}", host)) <= 253
    assert len(campaign(f"utm_source={text}&utm_medium={text}&utm_campaign={text}")) <= 96
