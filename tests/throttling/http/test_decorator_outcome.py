"""Counting by outcome: the call is reserved before the view, and refunded if it does not count."""

import asyncio
import functools
import threading

import pytest
from django.http import Http404, HttpResponse
from django.test import AsyncRequestFactory, RequestFactory

from redis_kit.throttling import Throttle, throttle

LOGIN = Throttle("login", "3/h")


def failed(request, response):
    return response.status_code == 401


def sync_view(request):
    return HttpResponse(status=int(request.GET["status"]))


async def async_view(request):
    return HttpResponse(status=int(request.GET["status"]))


VIEWS = {"sync": sync_view, "async": async_view, "partial": functools.partial(async_view)}


@pytest.fixture(params=VIEWS)
def login(request, kit):
    """Send a log-in that will be answered with a status."""
    view = throttle(LOGIN, key="ip", count_when=failed)(VIEWS[request.param])
    factory = RequestFactory() if request.param == "sync" else AsyncRequestFactory()
    with asyncio.Runner() as runner:

        async def awaited(answer):
            return await answer

        def post(status):
            answer = view(factory.post(f"/?status={status}"))
            return runner.run(awaited(answer)) if hasattr(answer, "__await__") else answer

        yield post


def left():
    return LOGIN.peek("ip:127.0.0.1").remaining


def test_only_those_responses_count_that_are_meant(login):
    assert [login(status).status_code for status in (200, 401, 302, 200, 401, 500)] == [200, 401, 302, 200, 401, 500]
    assert left() == 1
    assert [login(status).status_code for status in (200, 401, 200, 401)] == [200, 401, 429, 429]


def test_one_round_trip_when_it_counts_and_two_when_not(kit, login, commands):
    login(401), login(200)
    with commands(kit) as sent:
        login(401)
    assert len(sent) == 1
    with commands(kit) as sent:
        login(200)
    assert len(sent) == 2


def test_fields_say_what_is_left_after_the_response(login):
    assert login(401)["RateLimit"].startswith('"login";r=2;')
    assert login(200)["RateLimit"] == '"login";r=2'


@pytest.mark.parametrize("error", [Http404, RuntimeError])
def test_exception_leaves_the_call_counted(kit, error):
    def view(request):
        raise error

    async def async_one(request):
        raise error

    for one in (view, async_one):
        limited = throttle(LOGIN, key="ip", count_when=lambda request, response: False)(one)
        with pytest.raises(error):
            (asyncio.run if one is async_one else lambda answer: answer)(limited(RequestFactory().get("/")))
    assert left() == 1


def test_parallel_requests_do_not_slip_past(kit):
    """Three may be under way at once, whatever they come to."""
    inside, everybody_asked = threading.Semaphore(0), threading.Event()

    def view(request):
        inside.release()
        assert everybody_asked.wait(20)
        return HttpResponse(status=401)

    statuses = []
    limited = throttle(LOGIN, key="ip", count_when=failed)(view)
    threads = [
        threading.Thread(target=lambda: statuses.append(limited(RequestFactory().get("/")).status_code))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert inside.acquire(timeout=20)
    assert [limited(RequestFactory().get("/")).status_code for _ in range(4)] == [429] * 4
    everybody_asked.set()
    for thread in threads:
        thread.join(20)
    assert statuses == [401] * 3


def test_throttles_that_give_back_do_so_in_one_round_trip(kit, commands):
    outer = throttle("9/h", key="ip", name="outer", count_when=failed, cost=2)
    inner = throttle("9/h", key="ip", name="inner", count_when=failed)
    always = throttle("9/h", key="ip", name="always")
    view = outer(always(inner(sync_view)))
    view(RequestFactory().get("/?status=200"))
    with commands(kit) as sent:
        assert view(RequestFactory().get("/?status=200")).status_code == 200
    assert len(sent) == 3  # the decision, and two settlements that are sent together
    counts = [Throttle(name, "9/h").peek("ip:127.0.0.1").remaining for name in ("outer", "always", "inner")]
    assert counts == [9, 7, 9]


def test_answer_of_a_policy_is_not_given_back(own_kit):
    own_kit.server.stop()
    view = throttle("2/h", key="ip", name="view", on_failure="local", count_when=failed)(sync_view)
    assert [view(RequestFactory().get("/?status=200")).status_code for _ in range(3)] == [200, 200, 429]
