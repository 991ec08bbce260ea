"""The chat and the bell of the site, in two browsers, under a strict content security policy."""

import pytest

from tests.fixtures.process import free_port

pytestmark = pytest.mark.once

READERS, PASSWORD = ("ada", "bo", "chen"), "reading"  # as demo/seed.py has them
STRICT = {"content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'"}


@pytest.fixture(scope="module")
def address(start):
    port = free_port()
    start("--port", str(port)).printed(rf"(http://\S+:{port})", seconds=90)
    return f"http://127.0.0.1:{port}"


def reader(browser, address, name, **options):
    """Return the page of a reader who is logged in, with the complaints of the browser."""
    context, complaints = browser.new_context(base_url=address, **options), []
    page = context.new_page()
    page.set_default_timeout(15_000)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.route("**/*", strictly)
    page.goto("/log-in/?next=/talk/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.locator("main button").click()
    page.locator("#talk[data-live=yes]").wait_for()
    return page, complaints


def strictly(route):
    """Let pages come with a policy that allows external scripts and styles only."""
    if route.request.resource_type != "document" or route.request.method != "GET":
        return route.continue_()
    answer = route.fetch(max_redirects=0)
    return route.fulfill(response=answer, headers={**answer.headers, **STRICT})


def say(page, text):
    """Send a message."""
    page.get_by_label("Your message").fill(text)
    page.get_by_role("button", name="Send").click()


def test_readers_talk_and_the_bell_rings(address, chromium):
    def body(browser):
        (ada, of_ada), (bo, of_bo) = (reader(browser, address, name) for name in READERS[:2])
        say(ada, "<img src=x onerror=alert(1)> hello")
        bo.get_by_text("<img src=x onerror=alert(1)> hello", exact=True).wait_for()
        say(bo, "你好")
        ada.get_by_text("你好").wait_for()
        bo.reload()
        bo.locator("#talk[data-live=yes]").wait_for()
        lines = bo.locator("#talk li").all_inner_texts()
        assert [line for line in lines if "x" * 300 not in line] == [
            "ada <img src=x onerror=alert(1)> hello",
            "bo 你好",
        ]
        assert bo.locator("#talk li.own").count() == 1
        bo.goto("/")
        bo.locator("main .card a").first.click()
        bo.get_by_role("button", name="Send me this article").click()
        bo.locator("#bell.rings").wait_for()
        bo.locator("#bell summary").click()
        assert "Your letter is here" in bo.locator("#bell li").first.inner_text()
        bo.get_by_role("button", name="Mark as read").click()
        bo.locator("#bell:not(.rings)").wait_for()
        bo.reload()
        bo.wait_for_load_state()
        assert bo.locator("#bell data").inner_text() == "0"
        for page in (ada, bo):
            page.context.close()
        return of_ada + of_bo

    assert chromium(body) == []


def test_page_fits_on_a_phone(address, chromium):
    def body(browser):
        page, complaints = reader(browser, address, READERS[2], viewport={"width": 390, "height": 800})
        say(page, "x" * 300)
        page.get_by_text("x" * 300).wait_for()
        page.locator("#bell summary").click()
        width = page.evaluate("document.documentElement.scrollWidth")
        page.context.close()
        return width, complaints

    assert chromium(body) == (390, [])
