"""The middleware, in a sync and an async stack."""

import asyncio

import pytest
from django.http import Http404, HttpResponse
from django.test import AsyncClient, Client
from django.urls import path

from redis_kit.core.errors import ConfigurationError
from redis_kit.throttling import Throttle, throttle
from redis_kit.throttling.engine.base import Asked
from tests.app.models import User

THROTTLES = "redis_kit.throttling.middleware.ThrottleMiddleware"
SESSIONS = "django.contrib.sessions.middleware.SessionMiddleware"
USERS = "django.contrib.auth.middleware.AuthenticationMiddleware"


def page(request, **kwargs):
    told = " ".join(one.throttle.name for one in getattr(request, "throttles", ()))
    return HttpResponse(told, status=int(request.GET.get("status", 200)))


async def async_page(request, **kwargs):
    return page(request)


def missing(request):
    raise Http404


def monitored(request):
    return "X-Monitor" in request.headers


def failed(request, response):
    return response.status_code in (401, 404)


urlpatterns = [
    path("api/orders/", page),
    path("api/async/", async_page),
    path("api/missing/", missing),
    path("api/limited/", throttle("2/h", key="ip", name="view")(page)),
    path("login/", page),
]


@pytest.fixture(params=["sync", "async"])
def get(request, kit, settings):
    """Get a page through the whole of Django, by WSGI or ASGI."""
    settings.ROOT_URLCONF, settings.MIDDLEWARE = __name__, [THROTTLES]
    with asyncio.Runner() as runner:

        def get_page(path, *, method="get", client=None, **headers):
            headers = {name.replace("_", "-"): value for name, value in headers.items()}
            if request.param == "sync":
                return getattr(client or Client(), method)(path, headers=headers)
            return runner.run(getattr(client or AsyncClient(), method)(path, headers=headers))

        get_page.client = Client if request.param == "sync" else AsyncClient
        get_page.runner = runner
        yield get_page


@pytest.fixture
def given(kit):
    return lambda **entries: kit.options(THROTTLING={"POLICIES": entries, "REMEMBER": 0})


def statuses(get, path, count, **headers):
    return [get(path, **headers).status_code for _ in range(count)]


def test_nothing_is_done_without_policies(kit, get):
    response = get("/login/")
    assert (response.status_code, response.content, "RateLimit" in response) == (200, b"", False)
    assert kit.keys() == []


@pytest.mark.parametrize("where", ["/api/orders/", "/api/async/", "/api/missing/", "/api/nowhere/"])
def test_matching_requests_are_limited_and_others_are_not(get, given, where):
    given(api={"RATES": "2/h", "KEY": "ip", "PATHS": "/api/"})
    found = statuses(get, where, 3)
    assert found == [*([200] * 2 if "missing" not in where and "nowhere" not in where else [404] * 2), 429]
    assert get("/login/").status_code == 200
    assert "RateLimit" not in get("/login/")


def test_every_answer_has_the_fields(get, given):
    given(api={"RATES": "2/h", "KEY": "ip"})
    assert get("/api/missing/")["RateLimit"] == '"api";r=1;t=1800'
    assert get("/api/orders/").content == b"api"
    refused = get("/api/orders/", accept="application/json")
    assert refused["RateLimit-Policy"] == '"api";q=2;w=3600'
    assert refused["Content-Type"] == "application/problem+json"
    assert int(refused["Retry-After"]) > 1700


def test_all_policies_of_a_request_are_one_call_counted_by_all_or_none(kit, get, given, commands):
    given(
        burst={"RATES": "9/h", "KEY": "ip"},
        api={"RATES": "2/d", "KEY": "ip", "PATHS": "/api/", "METHODS": ["GET"]},
        login={"RATES": "1/d", "KEY": "ip", "PATHS": "/login/"},
        writes={"RATES": "1/d", "KEY": "ip", "METHODS": "POST"},
    )
    get("/api/orders/")
    with commands(kit) as sent:
        response = get("/api/orders/")
    assert sent == ["EVALSHA"]
    assert response.content == b"burst api"
    assert get("/api/orders/").status_code == 429
    assert Throttle("burst", "9/h").peek("ip:127.0.0.1").remaining == 7
    assert get("/api/orders/", method="post").status_code == 200
    assert get("/login/").status_code == 200


def test_methods_that_are_not_named_do_not_count(get, given):
    given(writes={"RATES": "1/h", "KEY": "ip", "METHODS": ["POST", "PUT"]})
    assert statuses(get, "/login/", 3) == [200] * 3
    assert [get("/login/", method=method).status_code for method in ("post", "put", "get")] == [200, 429, 200]


def test_head_counts_as_get(get, given):
    given(reads={"RATES": "1/h", "KEY": "ip", "METHODS": ["GET"]})
    assert [get("/login/", method=method).status_code for method in ("get", "head")] == [200, 429]


@pytest.mark.parametrize("spec", [f"{__name__}.monitored", monitored])
def test_exempt_requests_are_let_through(get, given, spec):
    given(api={"RATES": "1/h", "KEY": "ip", "EXEMPT": spec})
    assert statuses(get, "/login/", 3, x_monitor="yes") == [200] * 3
    assert statuses(get, "/login/", 2) == [200, 429]


@pytest.mark.parametrize("spec", [f"{__name__}.failed", failed])
def test_calls_count_by_outcome_and_exceptions_by_their_response(get, given, spec):
    given(login={"RATES": "2/h", "KEY": "ip", "COUNT_WHEN": spec})
    found = [get(path).status_code for path in ["/login/"] * 3 + ["/api/missing/", "/login/?status=401", "/login/"]]
    assert found == [200, 200, 200, 404, 401, 429]


def test_shadow_refuses_nothing(get, given):
    given(api={"RATES": "1/h", "KEY": "ip", "SHADOW": True})
    assert statuses(get, "/login/", 3) == [200] * 3


def test_ban_shuts_out(get, given):
    given(api={"RATES": "1/h", "KEY": "ip", "BAN": (1, 60, 90_000)})
    assert statuses(get, "/login/", 3) == [200, 429, 429]
    assert int(get("/login/")["Retry-After"]) > 89_000


def test_throttle_of_a_view_decides_beside_the_policies(get, given):
    given(api={"RATES": "9/h", "KEY": "ip"})
    first = get("/api/limited/")
    assert first.content == b"api view"
    assert first["RateLimit-Policy"] == '"view";q=2;w=3600, "api";q=9;w=3600'
    assert statuses(get, "/api/limited/", 2) == [200, 429]


def test_policies_follow_the_settings(get, given):
    given(api={"RATES": "1/h", "KEY": "ip"})
    assert statuses(get, "/login/", 2) == [200, 429]
    given(api={"RATES": "2/h", "KEY": "ip"})
    assert statuses(get, "/login/", 3) == [200, 200, 429]
    given()
    assert statuses(get, "/login/", 2) == [200, 200]


@pytest.mark.django_db(transaction=True)
def test_signed_in_users_have_limits_of_their_own(get, given, settings):
    settings.MIDDLEWARE = [SESSIONS, USERS, THROTTLES]
    given(api={"RATES": "1/h", "KEY": "user"})
    for name in ("ann", "joe"):
        client = get.client()
        user = User.objects.create_user(name)
        client.force_login(user) if get.client is Client else get.runner.run(client.aforce_login(user))
        assert [get("/login/", client=client).status_code for _ in range(2)] == [200, 429]
    assert statuses(get, "/login/", 2) == [200, 429]


def test_user_without_the_middleware_that_knows_it_is_a_clear_error(get, given):
    given(api={"RATES": "1/h", "KEY": "user"})
    with pytest.raises(ConfigurationError, match="put AuthenticationMiddleware into MIDDLEWARE, before"):
        get("/login/")


@pytest.mark.parametrize(("policy", "status"), [("open", 200), ("closed", 503), ("local", 200)])
def test_outage_is_never_an_error(own_kit, get, settings, policy, status):
    settings.REDIS_KIT = {
        **own_kit.settings.REDIS_KIT,
        "CONNECTIONS": {"default": own_kit.server.connection},
        "THROTTLING": {"POLICIES": {"api": {"RATES": "5/h", "KEY": "ip", "ON_FAILURE": policy}}},
    }
    own_kit.server.stop()
    response = get("/login/")
    assert response.status_code == status
    assert "RateLimit" not in response
    assert response.get("Retry-After") == ("1" if status == 503 else None)


def test_async_stack_asks_the_server_without_blocking_its_loop(get, given, monkeypatch):
    given(api={"RATES": "1/h", "KEY": "ip"})
    monkeypatch.setattr(Asked, "run" if get.client is AsyncClient else "arun", None)
    assert statuses(get, "/login/", 2) == [200, 429]
