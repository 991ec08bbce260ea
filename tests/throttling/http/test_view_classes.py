"""The throttles that a view of Django REST framework names, before its first request."""

import sys
from types import ModuleType

import pytest
from django.db import OperationalError
from django.test import Client, RequestFactory
from django.urls import clear_url_caches, include, path
from django.utils.decorators import method_decorator

pytest.importorskip("rest_framework")

from rest_framework.decorators import action, api_view, throttle_classes
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.throttling import UserRateThrottle as ForeignThrottle
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSet

from redis_kit.core.checks.configuration import check_settings
from redis_kit.throttling import drf, throttle
from redis_kit.throttling.discovery import built_throttles, project_throttles
from redis_kit.throttling.throttles import registered

pytestmark = pytest.mark.usefixtures("none_registered")
RATES = {"uploads": "2/h", "chat": "9/m"}


class UploadThrottle(drf.UserRateThrottle):
    scope = "uploads"


class WrongThrottle(drf.UserRateThrottle):
    rate = "x"


class LateThrottle(drf.UserRateThrottle):
    scope, rate = "late", "1/m"


class Uploads(APIView):
    throttle_classes = [UploadThrottle, ForeignThrottle, WrongThrottle]


class Chat(APIView):
    throttle_classes = [drf.ScopedRateThrottle]
    throttle_scope = "chat"


class Free(APIView):
    throttle_classes = [drf.ScopedRateThrottle]


class Late(ViewSet):
    throttle_classes = []

    @action(detail=False, throttle_classes=[LateThrottle])
    def again(self, request): ...


class Burst(drf.UserRateThrottle):
    scope, rate = "burst", "3/m"


@api_view()
@throttle_classes([Burst])
def decorated(request):
    return Response()


def test_throttle_above_api_view_is_named_after_the_function(kit):
    guard = throttle("2/h", key="ip")
    for view in (guard(decorated), guard(api_view()(lambda request: Response()))):
        view(RequestFactory().get("/"))
    names = {limit.name for limit in registered.values()}
    assert {f"{__name__}.decorated", f"{__name__}.<lambda>"} <= names


@pytest.fixture
def routes(kit, settings, monkeypatch):
    """The name of a root URLconf whose module is not imported yet."""
    monkeypatch.setattr(drf.SimpleRateThrottle, "THROTTLE_RATES", RATES, raising=False)
    router = SimpleRouter()
    router.register("late", Late, basename="late")
    module = ModuleType("throttled_routes")
    module.urlpatterns = [
        path("uploads/", Uploads.as_view()),
        path("more/", include([path("chat/", Chat.as_view()), path("free/", Free.as_view())])),
        path("decorated/", decorated),
        path("plain/", lambda request: None),
        *router.urls,
    ]
    settings.ROOT_URLCONF = module.__name__
    clear_url_caches()
    yield module
    sys.modules.pop(module.__name__, None)
    clear_url_caches()


def shown(throttles):
    return [(each.name, str(each.rates[0])) for each in throttles]


def test_throttles_of_views_are_found_before_their_first_request(routes, monkeypatch):
    assert shown(built_throttles()) == []  # nothing is imported for it
    monkeypatch.setitem(sys.modules, routes.__name__, routes)
    expected = [("drf.burst", "3/m"), ("drf.chat", "9/m"), ("drf.late", "1/m"), ("drf.uploads", "2/h")]
    assert shown(built_throttles()) == expected
    assert shown(project_throttles()) == expected


class Dear(APIView):
    throttle_classes = [drf.ScopedRateThrottle]
    throttle_scope = "dear"


class Several(APIView):
    throttle_classes = [drf.ScopedRateThrottle]
    throttle_scope = ["uploads"]


class DatabaseThrottle(drf.UserRateThrottle):
    scope = "stored"

    def get_rate(self):
        raise OperationalError("no such table")


class Stored(APIView):
    throttle_classes = [DatabaseThrottle]


def test_wrong_rates_of_views_are_errors_of_the_check(routes, monkeypatch):
    routes.urlpatterns += [path("dear/", Dear.as_view()), path("dear/2/", Dear.as_view()), path("s/", Stored.as_view())]
    routes.urlpatterns += [path("several/", Several.as_view())]
    monkeypatch.setitem(sys.modules, routes.__name__, routes)
    wrong, dear, several = [message for message in check_settings() if message.id == "redis_kit.E006"]
    assert wrong.msg.startswith(f"{__name__}.WrongThrottle: The rate 'x' is not valid.")
    assert dear.msg == f"{__name__}.Dear: No default throttle rate set for 'dear' scope"
    rates = "REST_FRAMEWORK['DEFAULT_THROTTLE_RATES']"
    assert several.msg == f"{__name__}.Several: throttle_scope is ['uploads']; it must be one name of {rates}."


def test_wrong_rates_of_default_classes_are_reported_once(routes, settings, monkeypatch):
    settings.REST_FRAMEWORK = {"DEFAULT_THROTTLE_CLASSES": [WrongThrottle]}
    monkeypatch.setitem(sys.modules, routes.__name__, routes)
    assert len([message for message in check_settings() if message.id == "redis_kit.E006"]) == 1


def test_throttle_of_a_view_is_the_one_that_its_requests_hit(routes, monkeypatch):
    monkeypatch.setitem(sys.modules, routes.__name__, routes)
    (uploads,) = [each for each in built_throttles() if each.name == "drf.uploads"]
    assert uploads is UploadThrottle().throttle()


def limited_views():
    """Return views of each kind that allow one request."""
    one = throttle("1/h", key="ip", name="api")
    above, below = one(api_view()(lambda request: Response())), api_view()(one(lambda request: Response()))
    get = {"get": lambda self, request: Response()}
    return [above, below, method_decorator(one, name="dispatch")(type("Dispatched", (APIView,), get)).as_view()]


@pytest.mark.parametrize("view", limited_views(), ids=["above api_view", "below api_view", "dispatch"])
@pytest.mark.parametrize(("accept", "kind"), [("*/*", "application/problem+json"), ("text/html, */*", "text/html")])
def test_clients_that_take_anything_get_a_problem_from_an_api(routes, monkeypatch, view, accept, kind):
    routes.urlpatterns = [path("api/", view)]
    monkeypatch.setitem(sys.modules, routes.__name__, routes)
    assert Client().get("/api/").status_code == 200
    refused = Client().get("/api/", headers={"Accept": accept})
    assert (refused.status_code, refused["Content-Type"].partition(";")[0]) == (429, kind)
