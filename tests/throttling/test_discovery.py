"""The throttles that the dashboard and the command find."""

import sys
from types import ModuleType

import pytest
from django.core.management import call_command
from django.http import HttpResponse
from django.urls import path
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache

from redis_kit.throttling import Throttle, throttle
from redis_kit.throttling.checks import LOGINS
from redis_kit.throttling.component import Throttling
from redis_kit.throttling.discovery import built_throttles, find
from redis_kit.throttling.throttles import registered

pytestmark = pytest.mark.usefixtures("none_registered")


def test_throttles_of_policies_of_log_ins_and_of_the_code_are_known(kit, settings):
    settings.AUTHENTICATION_BACKENDS = [LOGINS, "django.contrib.auth.backends.ModelBackend"]
    kit.options(THROTTLING={"POLICIES": {"api": {"RATES": "60/m"}}, "LOGIN_RATES": "2/h"})
    Throttle("own", "1/m")
    assert [(one.name, str(one.rates[0])) for one in built_throttles()] == [
        ("api", "60/m"),
        ("logins.address", "30/15m"),
        ("logins.name", "2/h"),
        ("own", "1/m"),
    ]


def test_log_ins_are_known_only_where_their_backend_is_in_use(kit):
    assert built_throttles() == []


def test_system_checks_put_nothing_in_the_place_of_a_throttle(kit):
    kit.options(THROTTLING={"POLICIES": {"api": {"RATES": "60/m", "STRATEGY": "sliding_log"}}})
    call_command("check")
    found = find(built_throttles(), "api", None)
    assert isinstance(found, Throttle)
    assert found.peek("joe").remaining == 60
    assert all(isinstance(one, Throttle) for one in registered.values())


@method_decorator([never_cache, throttle("5/m", key="ip"), throttle("9/h", name="shared")], name="post")
class Buy(View):
    @method_decorator(throttle("10/m", key="ip"))
    async def get(self, request): ...

    async def post(self, request): ...


@method_decorator(throttle("2/m", key="user"), name="dispatch")
class Sell(View):
    def get(self, request): ...


class SellLater(Sell):
    pass


def test_throttles_of_methods_are_known_before_the_first_request(kit, settings, monkeypatch, rf, none_registered):
    routes = ModuleType("routes_of_methods")
    views = (Buy.as_view(), never_cache(Sell.as_view()), SellLater.as_view(), lambda request: HttpResponse())
    routes.urlpatterns = [path(f"{number}/", view) for number, view in enumerate(views)]
    monkeypatch.setitem(sys.modules, routes.__name__, routes)
    settings.ROOT_URLCONF = routes.__name__
    names = {one.name.removeprefix(f"{__name__}."): str(one.rates[0]) for one in built_throttles()}
    assert names == {"Buy.get": "10/m", "Buy.post": "5/m", "Sell": "2/m", "SellLater": "2/m", "shared": "9/h"}
    known = find(built_throttles(), "Buy.post", None)
    assert known is find(built_throttles(), "Buy.post", None)
    assert list(known.identity_shapes)


def test_check_finds_a_connection_that_is_missing(kit, monkeypatch, settings):
    @method_decorator(throttle("5/m", name="method", using="chache"), name="dispatch")
    class Offer(View):
        pass

    routes = ModuleType("routes_of_a_missing_connection")
    routes.urlpatterns = [path("", Offer.as_view())]
    monkeypatch.setitem(sys.modules, routes.__name__, routes)
    settings.ROOT_URLCONF = routes.__name__
    throttle("5/m", name="function", using="chache")(lambda request: None)
    found = [(message.id, message.msg.partition(":")[0]) for message in Throttling().checks()]
    assert found == [("redis_kit.E002", f"The throttle {name!r}") for name in ("function", "method")]
