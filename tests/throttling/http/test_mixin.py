"""The mixin for class-based views."""

import asyncio

import pytest
from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from django.test import AsyncRequestFactory, RequestFactory
from django.views import View
from django.views.generic import TemplateView

from redis_kit.core.errors import InvalidValue
from redis_kit.throttling import InvalidRate, Throttle, ThrottleMixin
from redis_kit.throttling.engine.base import Asked
from redis_kit.throttling.throttles import registered


class Answers(View):
    def get(self, request):
        return HttpResponse(f"{request.throttle.remaining}", status=int(request.GET.get("status", 200)))

    def post(self, request):
        return self.get(request)


class AsyncAnswers(View):
    async def get(self, request):
        return HttpResponse(f"{request.throttle.remaining}", status=int(request.GET.get("status", 200)))

    async def post(self, request):
        return await self.get(request)


class Limited(ThrottleMixin, Answers):
    throttle_rates = "2/h"
    throttle_key = "ip"


class AsyncLimited(ThrottleMixin, AsyncAnswers):
    throttle_rates = "2/h"
    throttle_key = "ip"


@pytest.fixture(params=[Limited, AsyncLimited])
def get(request):
    """Return a function that asks the class, sync or async, with other attributes."""
    with asyncio.Runner() as runner:

        def ask(path="/", method="get", **attributes):
            view = type("Asked", (request.param,), attributes).as_view()
            if request.param is Limited:
                return view(getattr(RequestFactory(), method)(path))
            return runner.run(view(getattr(AsyncRequestFactory(), method)(path)))

        yield ask


def test_third_call_of_two_is_refused(kit, get):
    responses = [get() for _ in range(3)]
    assert [one.status_code for one in responses] == [200, 200, 429]
    assert [one.content for one in responses[:2]] == [b"1", b"0"]
    assert all("RateLimit" in one for one in responses)


def test_async_view_stays_async():
    assert asyncio.iscoroutinefunction(AsyncLimited.as_view())
    assert not asyncio.iscoroutinefunction(Limited.as_view())


def test_decision_of_an_async_view_does_not_block_its_loop(kit, monkeypatch):
    monkeypatch.setattr(Asked, "run", None)
    assert asyncio.run(AsyncLimited.as_view()(AsyncRequestFactory().get("/"))).status_code == 200


def test_one_round_trip(kit, commands, get):
    get()
    with commands(kit) as sent:
        get()
    assert sent == ["EVALSHA"]


def test_only_the_methods_given_count(kit, get):
    assert [get("/", "post", throttle_methods="POST").status_code for _ in range(3)] == [200, 200, 429]
    assert get("/", "options", throttle_methods=("POST",)).status_code == 200


def test_head_counts_as_get(kit, get):
    assert [get("/", method, throttle_methods="GET").status_code for method in ("get", "head", "head")] == [
        200,
        200,
        429,
    ]


def test_methods_that_the_view_does_not_have_count_too(kit, get):
    assert [get("/", "put").status_code for _ in range(3)] == [405, 405, 429]


def test_functions_are_methods_of_the_view(kit, get):
    def key(self, request):
        return f"tenant:{request.GET['tenant']}"

    def cost(self, request):
        return self.rows

    options = {"throttle_key": key, "throttle_cost": cost, "throttle_rates": "9/h", "rows": 4}
    assert [get("/?tenant=a", **options).status_code for _ in range(3)] == [200, 200, 429]
    assert get("/?tenant=b", **options).content == b"5"


def test_calls_count_by_outcome(kit, get):
    def failed(self, request, response):
        return response.status_code == 401

    statuses = [get(f"/?status={one}", throttle_count_when=failed).status_code for one in (200, 401, 200, 401, 401)]
    assert statuses == [200, 401, 200, 401, 429]


def test_exempt_requests_are_not_counted(kit, get):
    def exempt(self, request):
        return "free" in request.GET

    assert [get("/?free", throttle_exempt=exempt).status_code for _ in range(4)] == [200] * 4
    assert kit.keys() == []


def test_attributes_reach_the_throttle():
    options = {"throttle_strategy": "fixed_window", "throttle_on_failure": "closed", "throttle_shadow": True}
    guard = type("Named", (Limited,), {"throttle_name": "search", **options})().get_throttle_guard()
    limit = guard.throttle
    assert (limit.name, limit.strategy, limit.on_failure, limit.shadow) == ("search", "fixed_window", "closed", True)


def test_each_class_has_a_throttle_of_its_own_and_builds_it_once(kit):
    class Own(Limited): ...

    class Inherited(Own): ...

    first, second = Own.as_view(), Inherited.as_view()
    assert [first(RequestFactory().get("/")).status_code for _ in range(3)] == [200, 200, 429]
    assert second(RequestFactory().get("/")).status_code == 200
    assert Own().get_throttle_guard().throttle is Own().get_throttle_guard().throttle
    assert {limit.name.rpartition(".")[2] for limit in registered.values()} >= {"Own", "Inherited"}


def test_attributes_may_be_given_to_as_view(kit):
    view = Limited.as_view(throttle_rates="1/h", throttle_name="short")
    assert [view(RequestFactory().get("/")).status_code for _ in range(2)] == [200, 429]
    assert Limited.as_view()(RequestFactory().get("/")).status_code == 200


def test_throttle_can_be_shared(kit):
    limit = Throttle("shared", "2/h")
    view = Limited.as_view(throttle_rates=limit)
    view(RequestFactory().get("/"))
    assert limit.peek("ip:127.0.0.1").remaining == 1


@pytest.mark.parametrize(
    ("attribute", "value", "error"),
    [
        ("throttle_rates", "5/x", InvalidRate),
        ("throttle_rates", "", InvalidRate),
        ("throttle_key", "users", InvalidValue),
        ("throttle_methods", "GTE", InvalidValue),
        ("throttle_cost", 3, InvalidValue),
        ("throttle_exempt", "app.views.exempt", InvalidValue),
        ("throttle_count_when", 401, InvalidValue),
        ("throttle_strategy", "gcar", InvalidValue),
    ],
)
def test_wrong_attributes_fail_where_the_routes_are_defined(attribute, value, error):
    with pytest.raises(error):
        Limited.as_view(**{attribute: value})


def test_error_of_a_wrong_cost_names_the_throttle_and_the_range():
    with pytest.raises(InvalidValue, match=r"from 1 to 2 for the throttle '.*Limited', not '2'"):
        Limited.as_view(throttle_cost="2")


def test_other_mixins_before_it_answer_first(kit):
    class Members(LoginRequiredMixin, Limited):
        login_url = "/login/"

    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    assert [Members.as_view()(request).status_code for _ in range(4)] == [302] * 4
    assert kit.keys() == []


def test_response_that_is_not_rendered_yet_has_the_fields(kit):
    class Page(ThrottleMixin, TemplateView):
        throttle_rates, throttle_key, template_name = "2/h", "ip", "none.html"

    assert Page.as_view()(RequestFactory().get("/"))["RateLimit"].startswith('"Page";r=1')


def test_mixin_behind_the_view_is_refused():
    with pytest.raises(TypeError, match="Behind limits nothing: put ThrottleMixin before the view class"):
        type("Behind", (View, ThrottleMixin), {"throttle_rates": "5/m"})


def test_misspelt_attribute_is_refused_with_the_nearest():
    wrong = type("Wrong", (Limited,), {"throttle_kee": "ip"})
    with pytest.raises(InvalidValue, match=r"Wrong has no option 'throttle_kee'\. Did you mean 'throttle_key'"):
        wrong.as_view()


def test_attributes_of_rest_framework_are_left_alone(kit):
    both = type("Both", (Limited,), {"throttle_classes": [], "throttle_scope": "burst"})
    assert both.as_view()(RequestFactory().get("/")).status_code == 200


def test_error_of_a_class_without_rates_names_the_attribute():
    bare = type("Bare", (ThrottleMixin, Answers), {})
    with pytest.raises(InvalidRate, match="Bare has no rates: set its attribute throttle_rates"):
        bare.as_view()
