"""Throttle classes for Django Ninja while the server is unavailable: never an error."""

import asyncio
import time

import pytest
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.contrib.auth.models import AnonymousUser
from django.urls import path

pytest.importorskip("ninja")

from ninja import NinjaAPI

from redis_kit.throttling.ninja import AnonRateThrottle, AuthRateThrottle, UserRateThrottle

pytestmark = pytest.mark.alone(7)

POLICIES = ("open", "closed", "local", None)


def view(request):
    return "fresh"


async def async_view(request):
    return "fresh"


def api(kind, function):
    """Return an API with one operation for each class and policy, all with the rate 5/h."""
    found = NinjaAPI(urls_namespace=kind)
    for policy in POLICIES:
        for place, base in enumerate((AnonRateThrottle, AuthRateThrottle, UserRateThrottle)):
            throttle = type(f"{policy}{base.__name__}", (base,), {"on_failure": policy, "scope": f"{kind}-{policy}"})
            found.get(f"/{policy}/{place}", throttle=throttle("5/h"))(function)
    return found


urlpatterns = [path("sync/", api("sync", view).urls), path("async/", api("async", async_view).urls)]


@pytest.fixture(autouse=True)
def site(settings):
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = [f"{__name__}.with_user"]


def with_user(get_response):
    """Put the user on requests that UserRateThrottle looks at."""

    def middleware(request):
        request.user = AnonymousUser()
        return get_response(request)

    return markcoroutinefunction(middleware) if iscoroutinefunction(get_response) else middleware


with_user.async_capable = True


@pytest.fixture(params=["sync", "async"])
def ask(request, client, async_client):
    """Ask an operation of either kind several times."""

    async def several(place, times):
        return [await async_client.get(f"/async/{place}") for _ in range(times)]

    def call(place, times=8):
        if request.param == "async":
            return asyncio.run(several(place, times))
        return [client.get(f"/sync/{place}") for _ in range(times)]

    return call


def statuses(responses):
    return [response.status_code for response in responses]


@pytest.mark.parametrize("trouble", ["stop", "freeze"])
@pytest.mark.parametrize("place", range(3))
def test_policies_answer_and_nothing_is_slow_or_an_error(own_kit, ask, place, trouble):
    getattr(own_kit.server, trouble)()
    began = time.monotonic()
    found = {policy: statuses(ask(f"{policy}/{place}")) for policy in POLICIES}
    taken = time.monotonic() - began
    own_kit.server.thaw() if trouble == "freeze" else None
    assert found == {"open": [200] * 8, "closed": [429] * 8, "local": [200] * 5 + [429] * 3, None: [200] * 8}
    assert taken < 7  # calls that all wait for a frozen server take 0.25 s each, or have no limit


def test_refusal_of_an_outage_says_when_to_come_again(own_kit, ask):
    own_kit.server.stop()
    (response,) = ask("closed/0", times=1)
    assert response.status_code == 429
    assert response["Retry-After"] == "1"
    assert response.json() == {"detail": "Too many requests."}


def test_server_that_came_back_counts_again(own_kit, ask):
    own_kit.server.stop()
    assert statuses(ask("closed/0", times=1)) == [429]
    own_kit.server.start()
    assert statuses(ask("closed/0", times=6)) == [200] * 5 + [429]


def test_server_that_is_full_is_no_error(own_kit, ask):
    with own_kit.server.client() as connection:
        connection.config_set("maxmemory", 1)
    assert statuses(ask("open/0", times=2)) == [200, 200]
    assert statuses(ask("closed/0", times=2)) == [429, 429]
