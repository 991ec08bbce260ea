"""Throttles that stand directly on each other: one call, counted by all or none."""

import asyncio

import pytest
from django.http import HttpResponse
from django.test import AsyncRequestFactory, RequestFactory
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache

from redis_kit.throttling import Throttle, throttle

SMALL = throttle("1/h", key="ip", name="small")
LARGE = throttle("9/h", key="ip", name="large")


def page(request):
    return HttpResponse(" ".join(f"{one.throttle.name} {one.decision.remaining}" for one in request.throttles))


async def async_page(request):
    return page(request)


def get(view):
    if asyncio.iscoroutinefunction(view):
        return asyncio.run(view(AsyncRequestFactory().get("/")))
    return view(RequestFactory().get("/"))


@method_decorator([LARGE, SMALL], name="dispatch")
class Listed(View):
    def get(self, request):
        return page(request)


STACKED = {
    "sync": LARGE(SMALL(page)),
    "async": LARGE(SMALL(async_page)),
    "three": LARGE(SMALL(throttle("5/h", key="ip", name="third")(page))),
    "class": Listed.as_view(),
}


@pytest.mark.parametrize("kind", STACKED)
def test_all_throttles_count_by_one_call_of_the_server(kit, commands, kind):
    get(STACKED[kind])
    with commands(kit) as sent:
        kit.options(THROTTLING={"REMEMBER": 0})
        get(STACKED[kind])
    assert sent == ["EVALSHA"]


@pytest.mark.parametrize("kind", STACKED)
def test_refusal_by_one_is_counted_by_none(kit, kind):
    assert [get(STACKED[kind]).status_code for _ in range(4)] == [200, 429, 429, 429]
    assert Throttle("large", "9/h").peek("ip:127.0.0.1").remaining == 8


def test_every_kind_of_server_counts_all_or_none_and_takes_back(any_kit):
    large = throttle("9/h", key="ip", name="large", count_when=lambda request, response: "free" not in request.GET)
    view = large(throttle("2/h", key="ip", name="small")(page))
    view(RequestFactory().get("/?free"))
    assert Throttle("large", "9/h").peek("ip:127.0.0.1").remaining == 9
    assert [get(view).status_code for _ in range(3)] == [200, 429, 429]
    assert Throttle("large", "9/h").peek("ip:127.0.0.1").remaining == 8


@pytest.mark.parametrize("kind", STACKED)
def test_view_is_told_all_decisions_and_the_one_with_least_left(kit, kind):
    assert get(STACKED[kind]).content.startswith(b"large 8 small 0")
    told = []
    limited = throttle("3/h", key="ip", name="first")(throttle("2/h", key="ip", name="second")(told.append))
    with pytest.raises(AttributeError):  # the view returned no response
        limited(RequestFactory().get("/"))
    assert told[0].throttle.limit == 2


def test_refusing_throttle_decides(kit):
    view = SMALL(LARGE(page))
    get(view)
    request = RequestFactory().get("/")
    view(request)
    assert (request.throttle.allowed, request.throttle.limit) == (False, 1)
    assert [one.decision.allowed for one in request.throttles] == [False, True]


def test_throttles_with_another_decorator_between_them_are_separate(kit):
    view = LARGE(never_cache(SMALL(page)))
    assert [get(view).status_code for _ in range(3)] == [200, 429, 429]
    assert Throttle("large", "9/h").peek("ip:127.0.0.1").remaining == 6
    assert "no-store" in get(view)["Cache-Control"]


def test_request_has_the_decisions_of_all_throttles(kit):
    view = SMALL(never_cache(LARGE(page)))
    response = get(view)
    assert response.content == b"small 0 large 8"
    assert response["RateLimit-Policy"] == '"large";q=9;w=3600, "small";q=1;w=3600'


def test_mark_on_a_view_itself_is_kept(kit):
    inner = SMALL(page)
    inner.login_required = False
    view = LARGE(inner)
    assert view.login_required is False
    assert view.__name__ == "page"
    assert [get(view).status_code for _ in range(2)] == [200, 429]
    assert Throttle("large", "9/h").peek("ip:127.0.0.1").remaining == 8


def test_inner_view_can_still_be_called_by_itself(kit):
    inner = SMALL(page)
    LARGE(inner)
    assert get(inner).content == b"small 0"


def test_throttles_of_two_connections_are_separate(kit):
    default = kit.settings.REDIS_KIT["CONNECTIONS"]["default"]
    kit.options(CONNECTIONS={"default": default, "other": default})
    view = throttle("9/h", key="ip", name="large", using="other")(SMALL(page))
    assert [get(view).status_code for _ in range(2)] == [200, 429]


def test_only_those_count_that_are_for_the_method(kit):
    view = throttle("1/h", key="ip", name="writes", methods="POST")(LARGE(page))
    assert [get(view).content for _ in range(3)] == [b"large 8", b"large 7", b"large 6"]
    assert view(RequestFactory().post("/")).content == b"writes 0 large 5"
    assert view(RequestFactory().post("/")).status_code == 429


def test_unnamed_throttles_of_one_view_have_different_names_in_the_fields(kit):
    view = throttle("9/h", key="ip")(throttle("1/m", key="ip")(page))
    assert get(view)["RateLimit-Policy"] == '"page";q=9;w=3600, "page 1/m";q=1;w=60'
