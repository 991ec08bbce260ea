"""The script of the beacon in a browser, under a strict content security policy."""

import pytest

from redis_kit.pageviews import PageViews, flush
from redis_kit.pageviews.buffer import buffer
from tests.fixtures.dashboard import site as site  # with a strict policy, in place of that of page views
from tests.fixtures.dashboard import visited
from tests.fixtures.servers import wait_for
from tests.pageviews.urls import BROWSER

pytestmark = pytest.mark.once


def test_script_reports_one_view_and_nothing_private(request, kit, settings, chromium, transactional_db, monkeypatch):
    url = request.getfixturevalue("site").url
    settings.ROOT_URLCONF = "tests.pageviews.urls"
    monkeypatch.setattr(buffer, "_start", lambda: None)

    def read(browser):
        sent = []
        with visited(browser, url) as (page, problems):
            page.set_extra_http_headers({"User-Agent": BROWSER})
            page.on("request", lambda request: sent.append(request.post_data) if "page-view" in request.url else None)
            page.goto("/reported/7/?utm_source=news&q=private")
            wait_for(lambda: buffer.waiting)
            problems += page.evaluate("violations")
            cookies = page.context.cookies()
            page.set_extra_http_headers({})
        return problems, sent, cookies

    problems, (body,), cookies = chromium(read)
    assert problems == cookies == []
    assert "utm_source%3Dnews" in body
    assert "private" not in body
    (event,) = buffer._events
    assert (event.page, event.key, event.campaign) == ("reported", "7", "news / - / -")
    assert flush()
    assert PageViews("reported", 7).views() == 1
