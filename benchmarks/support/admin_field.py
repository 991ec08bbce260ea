"""The field of the example's admin that chooses an author: by the kit, and by Django alone."""

import os
import random
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import redis

os.environ["DJANGO_SETTINGS_MODULE"] = "example_project.settings"
REQUESTS = 40
TYPED, CHOSEN = "zusann quee", "Zusanna Queensberry"


def run(rows: int, url: str) -> None:
    """Print the median time of a request by both, and what a browser chooses, at last with Redis stopped."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["READING_DATABASE"] = f"{folder}/reading.sqlite3"
        import django
        from django.conf import settings

        settings.REDIS_KIT = {**settings.REDIS_KIT, "CONNECTIONS": {"default": {"URL": url}}, "READ_TIMEOUT": 5}
        django.setup()
        _fill(rows)
        names = _names(REQUESTS)
        with_kit = _time(names)
        _print_choice("by the kit")
        from example_project.reading.admin import AuthorAdmin

        original = AuthorAdmin._find
        AuthorAdmin._find = lambda self, request, queryset, text: None  # type: ignore[method-assign]
        alone = _time(names)
        print(
            f"\nthe admin's field among {rows:,} authors on SQLite, p50 of a request: kit {1000 * with_kit:.1f} ms, ",
            end="",
        )
        print(f"Django alone {1000 * alone:.1f} ms, {alone / with_kit:.1f} times as long")
        AuthorAdmin._find = original  # type: ignore[method-assign]
        redis.Redis.from_url(url).shutdown(nosave=True)
        _print_choice("with Redis stopped")


def _fill(rows: int) -> None:
    from django.core.management import call_command

    from benchmarks.support import names
    from example_project.reading.models import Author, User, authors

    call_command("migrate", verbosity=0)
    User.objects.create_superuser("admin", password="admin")
    Author.objects.create(name=CHOSEN)
    Author.objects.bulk_create((Author(name=name) for _id, name, _weight in names.entries(rows)), batch_size=5000)
    began = time.perf_counter()
    authors.rebuild()
    print(f"rebuilt from {rows:,} rows in {time.perf_counter() - began:.0f} s")


def _names(count: int) -> list[str]:
    """Return the beginnings of both words of some authors."""
    from benchmarks.support import names

    rng = random.Random(4)
    return [" ".join(part[:4] for part in names.name(rng).split()) for _ in range(count)]


def _time(queries: list[str]) -> float:
    from django.test import Client
    from django.urls import reverse

    from example_project.reading.models import User

    client, times = Client(), list[float]()
    client.force_login(User.objects.get(username="admin"))
    field: dict[str, Any] = {"app_label": "reading", "model_name": "article", "field_name": "author"}
    for query in queries:
        began = time.perf_counter()
        answer = client.get(reverse("admin:autocomplete"), {**field, "term": query})
        times.append(time.perf_counter() - began)
        assert answer.status_code == 200, answer
    return median(times)


def _print_choice(how: str) -> None:
    """Choose an author for an article in Chromium, as an editor does, if Chromium and playwright are there."""
    with ThreadPoolExecutor(1) as thread:  # the library runs an event loop, in which Django refuses to query
        print(f"in Chromium, {how}: {thread.submit(_choose).result()}", flush=True)


def _choose() -> str:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return "no playwright"
    if not (program := shutil.which("chromium") or shutil.which("chromium-headless-shell")):
        return "no chromium"
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.core.handlers.wsgi import WSGIHandler
    from django.test.testcases import LiveServerThread

    server = LiveServerThread("localhost", lambda handler: StaticFilesHandler(WSGIHandler()))
    server.daemon = True
    server.start()
    server.is_ready.wait()
    with sync_playwright() as library:
        browser = library.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(base_url=f"http://localhost:{server.port}")
        page.goto("/admin/login/?next=/admin/reading/article/add/")
        page.fill("#id_username", "admin")
        page.fill("#id_password", "admin")
        page.click("[type=submit]")
        page.click(".field-author .select2-selection")
        page.wait_for_selector(".select2-results__option:not(.loading-results)", timeout=60_000)
        began = time.perf_counter()
        page.keyboard.type(TYPED)
        page.wait_for_function(
            "(text) => document.querySelector('.select2-results__option--highlighted')?.innerText == text",
            arg=CHOSEN,
            timeout=60_000,
        )
        seconds = time.perf_counter() - began
        page.keyboard.press("Enter")
        choice = page.inner_text("#select2-id_author-container").removeprefix("\u00d7").strip()
        browser.close()
    server.terminate()
    return f"{choice} {seconds:.2f} s after the first letter, of which select2 waits 0.25"


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2])
