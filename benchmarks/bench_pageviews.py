"""What the middleware of page views adds to a request, beside the same stack without it."""

import asyncio
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

from benchmarks.support.measurement import site
from benchmarks.support.workers.goals import Goal

OURS = "redis_kit.pageviews.middleware.PageViewMiddleware"
STACK = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROUNDS, REQUESTS = 300, 25  # of each stack, in turn
VISITORS, PAGES = 5000, 100  # each visitor looks at two pages
LIMIT = 30.0  # microseconds
SYNC_ROUNDS = 40
COUNTED = 1000  # requests whose round trips are counted

PROXIED = {"TRUSTED_PROXIES": 1}
CASES: dict[str, dict[str, Any]] = {
    "buffer, daily_salt (the default)": {},
    "buffer, daily_salt, behind a proxy": PROXIED,
    "buffer, session": {"PAGEVIEWS": {"VISITOR": "session"}},
    "buffer, cookie (signed) that the browser has": {"PAGEVIEWS": {"VISITOR": "cookie"}},
}
Answer = Callable[[Any], object]


def run() -> None:
    """Print the microseconds and the round trips that each case adds to a request, and the goals."""
    with site():
        urls = _urls()
        from django.conf import settings

        connection = settings.REDIS_KIT
        print(f"{'of a request, median of ' + str(ROUNDS) + ' turns':44}{'stack us':>9}{'added us':>10}{'trips':>7}")
        added = {name: _case(name, urls, {**connection, **options}) for name, options in CASES.items()}
        added["async"] = _case("buffer, async stack of its own", urls, connection, is_async=True)
        gone = {**connection, "CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1"}}}
        added["gone"] = _case("buffer, Redis stopped", urls, gone)
        _case("sync", urls, {**connection, "PAGEVIEWS": {"WRITE": "sync"}}, rounds=SYNC_ROUNDS)
        _case("sync, Redis stopped", urls, {**gone, "PAGEVIEWS": {"WRITE": "sync"}}, rounds=SYNC_ROUNDS)
        print()
        for name, microseconds in added.items():
            print(Goal(f"microseconds added, {name}", microseconds, "<=", LIMIT))
        print()


def _case(name: str, urls: ModuleType, kit: dict[str, Any], *, rounds: int = ROUNDS, is_async: bool = False) -> float:
    from django.test import override_settings

    from redis_kit.pageviews.buffer import buffer

    requests = _requests(proxied="TRUSTED_PROXIES" in kit, path="/async/" if is_async else "/post/")
    with override_settings(REDIS_KIT=kit, ROOT_URLCONF=urls), _answers(is_async=is_async) as (plain, counted):
        for answer in (plain, counted):
            _median(answer, requests, 0)
        pairs = [(_median(plain, requests, turn), _median(counted, requests, turn)) for turn in range(rounds)]
        trips = _trips(lambda: [counted(request) for request in requests[:COUNTED]])
        buffer.discard()
    stack, added = statistics.median(one for one, _ in pairs), statistics.median(two - one for one, two in pairs)
    print(f"{name:44}{stack * 1e6:9.1f}{added * 1e6:10.1f}{trips / COUNTED:7.2f}")
    return added * 1e6


@contextmanager
def _answers(*, is_async: bool) -> Iterator[tuple[Answer, Answer]]:
    """Give two functions that answer a request, by a stack without the middleware and with it."""
    from django.core.handlers.base import BaseHandler
    from django.test import override_settings

    def handler(middleware: list[str]) -> BaseHandler:
        with override_settings(MIDDLEWARE=middleware):
            made = BaseHandler()
            made.load_middleware(is_async=is_async)
            return made

    if not is_async:
        yield handler(STACK).get_response, handler([OURS, *STACK]).get_response
        return
    # Django's own middleware goes through a thread for each request, whose noise is larger than what is measured.
    with asyncio.Runner() as runner:
        plain, counted = handler([]), handler([OURS])
        yield (
            lambda request: runner.run(plain.get_response_async(request)),
            lambda request: runner.run(counted.get_response_async(request)),
        )


def _median(answer: Answer, requests: list[Any], turn: int) -> float:
    times = []
    for place in range(turn * REQUESTS, (turn + 1) * REQUESTS):
        request = requests[place % len(requests)]
        began = time.perf_counter()
        answer(request)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _trips(answer: Callable[[], object]) -> int:
    """Return the round trips that requests make, without those of the thread that empties the buffer."""
    from redis_kit.core.client.single import Client

    made, this_thread = [], threading.get_ident()

    def noted(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if threading.get_ident() == this_thread:
                made.append(method)
            return method(*args)

        return call

    with patch.multiple(Client, **{name: noted(getattr(Client, name)) for name in ("call", "batch", "block")}):
        answer()
    return len(made)


def _requests(*, proxied: bool, path: str) -> list[Any]:
    from django.test import RequestFactory

    from redis_kit.pageviews.middleware import signed

    def made(number: int) -> Any:
        address = f"10.{number // 62_500}.{number // 250 % 250}.{number % 250}"
        agent = f"Mozilla/5.0 (X11; Linux x86_64; rv:{number % 70}.0) Gecko/20100101 Firefox/{number % 70}.0"
        headers = {"user-agent": agent, "sec-fetch-dest": "document"}
        if proxied:
            headers["x-forwarded-for"] = address
        factory = RequestFactory(headers=headers, REMOTE_ADDR="127.0.0.1" if proxied else address)
        factory.cookies["rk_visitor"] = signed(f"{number:022}")
        return factory.get(f"{path}{number % PAGES}/")

    return [made(number // 2) for number in range(2 * VISITORS)]


def _urls() -> ModuleType:
    from django.http import HttpRequest, HttpResponse
    from django.urls import path

    def post(request: HttpRequest, pk: int) -> HttpResponse:
        return HttpResponse("<p>Hello")

    async def apost(request: HttpRequest, pk: int) -> HttpResponse:
        return HttpResponse("<p>Hello")

    urls = ModuleType("benchmarks.urls")
    urls.urlpatterns = [path("post/<int:pk>/", post), path("async/<int:pk>/", apost)]  # type: ignore[attr-defined]
    return urls
