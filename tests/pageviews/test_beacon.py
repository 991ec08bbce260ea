"""The beacon and its script: what counts, and who may not."""

import asyncio
import json

import pytest
from asgiref.sync import SyncToAsync
from django.core import signing
from django.db import connections
from django.test import AsyncClient, Client, RequestFactory
from django.urls import resolve

from redis_kit.core.errors import ConfigurationError, InvalidName
from redis_kit.pageviews import PageViews, dropped, flush, page_token
from redis_kit.pageviews.beacon import abeacon, beacon, beacon_url
from redis_kit.pageviews.buffer import buffer
from tests.pageviews.urls import BROWSER

FORM = "application/x-www-form-urlencoded"


@pytest.fixture(params=["sync", "async"])
def report(request, site):
    """Report a view as the script does, through WSGI or ASGI, and return the response."""
    with asyncio.Runner() as runner:

        def send(page=None, *, host="testserver", **options):
            headers = {"user-agent": BROWSER, "origin": f"http://{host}", **options.pop("headers", {})}
            data = {"page": page_token("front") if page is None else page, **options}
            if request.param == "sync":
                return Client().post("/page-view/", data, headers=headers)
            return runner.run(AsyncClient().post("/page-view/", data, headers=headers))

        yield send


def top():
    assert flush()
    return dict(PageViews.site().top())


def test_view_is_counted_with_its_origin_and_without_a_cookie(report, site, monkeypatch):
    monkeypatch.setattr(buffer, "_start", lambda: None)
    site.options(PAGEVIEWS={"VISITOR": "cookie"})
    response = report(page_token("post", 7), referrer="https://www.search.example/?q=x", query="utm_source=news")
    assert (response.status_code, response.content, response.cookies) == (204, b"", {})
    assert response["Cache-Control"] == "no-store"
    (event,) = buffer._events
    assert event[1:] == ("post", "7", "", "search.example", "news / - / -", False)
    assert top() == {"post": 1}
    assert PageViews("post", 7).views() == 1


def test_visitor_is_the_one_that_the_middleware_sees(report, site):
    Client().get("/named/", headers={"user-agent": BROWSER})
    report()
    report()
    assert top() == {"front": 3}
    assert PageViews("front").visitors() == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://testserver.evil.example"}, 403),
        ({"origin": "http://testserver:8000"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "https://testserver"}, 204),
        ({"origin": "https://static.example"}, 204),
    ],
)
def test_other_origins_are_refused(report, site, headers, status):
    site.options(PAGEVIEWS={"BEACON_ORIGINS": ["https://static.example"]})
    assert report(headers=headers).status_code == status
    assert top() == ({"front": 1} if status == 204 else {})


def forged():
    name = json.dumps(["front", ""])
    yield from ("", "front", name, f"{name}:signature", "x" * 5000, "\udcff", page_token("front")[:-1])
    yield signing.dumps(["front", ""])
    yield signing.Signer(salt="other").sign_object(["front", ""])


@pytest.mark.parametrize("page", [*forged()], ids=range(len([*forged()])))
def test_pages_without_a_signature_are_unknown(report, site, page):
    response = report(page.encode("utf-8", "replace").decode())
    assert response.status_code == 400
    assert top() == {}
    assert site.keys() == []


def test_only_short_posts_of_a_form_are_read(report, site):
    def post(body, kind):
        return (
            Client().post("/page-view/", body, content_type=kind, headers={"origin": "http://testserver"}).status_code
        )

    assert report(query="x" * 9000).status_code == 413
    assert Client().get("/page-view/").status_code == 405
    assert post(b"\xff\0", FORM) == 400
    assert post(b"x", "multipart/form-data") == 400
    assert post(b"{}", "application/json") == 400
    assert top() == {}


def test_rules_of_the_middleware_hold(report, site):
    report(headers={"user-agent": "curl/8.5.0"})
    report(headers={"sec-purpose": "prefetch"})
    site.options(PAGEVIEWS={"EXCLUDE_STAFF": True, "RESPECT_OPT_OUT": True})
    report(headers={"As": "anna staff"})
    report(headers={"Sec-GPC": "1"})
    report(headers={"As": "bert"})
    assert top() == {"front": 1}


@pytest.mark.parametrize("write", ["buffer", "sync"])
def test_in_an_event_loop_the_beacon_uses_no_thread(site, monkeypatch, write):
    site.options(PAGEVIEWS={"WRITE": write})
    data = {"page": page_token("front")}
    request = RequestFactory().post("/page-view/", data, headers={"user-agent": BROWSER, "origin": "http://testserver"})

    def hop(*args, **options):
        raise AssertionError("a thread was asked")

    async def send():
        with monkeypatch.context() as patched:
            patched.setattr(SyncToAsync, "__call__", hop)
            patched.setattr(asyncio.get_running_loop(), "run_in_executor", hop)
            return (await resolve("/page-view/").func(request)).status_code

    assert asyncio.run(send()) == 204
    assert top() == {"front": 1}


def test_beacon_is_synchronous_without_a_loop_or_with_atomic_requests(site, monkeypatch):
    async def view():
        return resolve("/page-view/").func

    assert resolve("/page-view/").func is beacon
    assert asyncio.run(view()) is abeacon
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    assert asyncio.run(view()) is beacon


def test_error_of_this_process_is_counted_and_answered(report, site, monkeypatch, caplog):
    monkeypatch.setattr("redis_kit.pageviews.middleware.event_of", lambda *args, **options: 1 / 0)
    assert report().status_code == 204
    assert dropped().failed == 1
    assert "A page view was not counted: " in caplog.text


def test_page_names_are_checked():
    with pytest.raises(InvalidName):
        page_token("x" * 1000)


def rendered(path, client=None):
    response = (client or Client()).get(path, headers={"user-agent": BROWSER})
    assert response.status_code == 200
    return response.content.decode()


def test_page_of_the_beacon_has_the_script_and_counts_once(report, site):
    html = rendered("/reported/7/")
    assert '<script src="/static/redis_kit/pageviews.js" data-url="/page-view/" data-page="' in html
    assert top() == {}
    report(html.partition('data-page="')[2].partition('"')[0])
    assert top() == {"reported": 1}
    assert PageViews("reported", "7").views() == 1


def test_class_based_view_can_leave_its_page_to_the_beacon(report, site):
    assert "data-page" in rendered("/reported-shop/")
    assert top() == {}


def test_page_of_the_middleware_has_no_script(site):
    assert "data-page" not in rendered("/unreported/")
    assert top() == {"unreported": 1}


def test_without_the_middleware_each_page_has_the_script(site, settings):
    settings.MIDDLEWARE = []
    assert "data-page" in rendered("/unreported/")
    assert "data-page" not in rendered("/uncounted-script/")


def test_missing_url_is_an_error_that_says_what_to_add(settings):
    settings.ROOT_URLCONF = "tests.urls"
    with pytest.raises(ConfigurationError, match=r"include\('redis_kit.pageviews.urls'\)"):
        beacon_url()
