"""A stock of parts on the dashboard, people who may do more or less with it, and a browser that looks at it."""

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from django.test import Client, override_settings
from pytest_django.live_server_helper import LiveServer

from redis_kit.core import component
from tests.app.models import User
from tests.dashboard import parts
from tests.dashboard.policy import POLICY
from tests.fixtures.kit import Kit

ADMIN = "/admin/redis_kit/dashboard/"
MEASURE = (Path(__file__).parent / "measure.js").read_text()
WATCH = (
    "window.violations = []; addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective))"
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture
def own_panels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No panel but those of the tests' own component, with nothing in the mirror."""
    monkeypatch.setattr(component, "BUILTIN", ("redis_kit.dashboard.component.Dashboard",))
    for given in (parts.MIRROR, parts.ASKED, parts.FAILURE):
        given.clear()
    yield
    for given in (parts.MIRROR, parts.ASKED, parts.FAILURE):
        given.clear()
    parts.TITLE[:] = ["Mirror"]


@pytest.fixture
def stock(kit: Kit, own_panels: None) -> Kit:
    """The kit with three bolts and four nuts."""
    kit.options(EXTRA_COMPONENTS=["tests.dashboard.parts.Parts"])
    kit.client.hset(parts.key("stock"), mapping={"bolt": 3, "nut": 4})
    return kit


@pytest.fixture
def signed_in(db: None) -> Callable[..., Client]:
    """Return a client of somebody of the staff with these permissions of the kit; "superuser" has all."""

    def sign_in(*codenames: str, staff: bool = True, **options: Any) -> Client:
        everything = "superuser" in codenames
        user = User.objects.create_user(f"user{User.objects.count()}", is_staff=staff, is_superuser=everything)
        found = Permission.objects.filter(content_type__app_label="redis_kit", codename__in=codenames)
        user.user_permissions.set(found)
        assert everything or len(found) == len(codenames)
        client = Client(**options)
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def boss(signed_in: Callable[..., Client]) -> Client:
    """A client that may do everything."""
    return signed_in("superuser")


@pytest.fixture(scope="module")
def site(django_db_setup: None) -> Iterator[LiveServer]:
    """A server with the strict policy: it reads its middleware once, at its start."""
    with override_settings(MIDDLEWARE=["tests.dashboard.policy.strict", *settings.MIDDLEWARE]):
        server = LiveServer("localhost")
        yield server
        server.stop()


@pytest.fixture(scope="module")
def chromium(site: LiveServer) -> Iterator[Callable[..., Any]]:
    """Run a function with a new browser, in a thread of its own: the library occupies its thread with an event loop.

    It ends before the site does, so that no connection is left open.
    """
    executable = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        executable = None
    if executable is None:
        reason = "no playwright in the environment, or no chromium on the PATH (apt-get install chromium)"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    with ThreadPoolExecutor(1) as thread:
        library = thread.submit(lambda: sync_playwright().start()).result()
        browser = thread.submit(lambda: library.chromium.launch(executable_path=executable, args=FLAGS)).result()
        yield lambda function: thread.submit(function, browser).result()
        thread.submit(browser.close).result()
        thread.submit(library.stop).result()


@pytest.fixture
def visit(transactional_db, chromium, site, stock, boss) -> Callable[..., None]:
    """Run a function with a page of the dashboard, signed in, and see that the browser had nothing to complain of."""
    session = {"name": "sessionid", "value": boss.cookies["sessionid"].value, "url": site.url}
    stock.options(DASHBOARD={"REFRESH": 2})

    def run(function: Callable[[Any], None], *, width: int = 1280, **options: Any) -> None:
        def body(browser: Any) -> None:
            viewport = {"width": width, "height": 900}
            context = browser.new_context(viewport=viewport, base_url=site.url, **options)
            context.add_cookies([session])
            context.add_init_script(WATCH)
            page, complaints = context.new_page(), []
            page.set_default_timeout(8000)
            page.on("console", lambda message: complaints.append(f"{message.type}: {message.text} {message.location}"))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            assert page.goto(ADMIN).headers["content-security-policy"] == POLICY
            function(page)
            if options.get("java_script_enabled", True):
                complaints += page.evaluate("violations")
            context.close()
            assert complaints == []

        chromium(body)

    return run
