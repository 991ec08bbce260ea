"""Throttle classes for Django REST framework while the server is unavailable: never an error."""

import time

import pytest
from django.urls import path

pytest.importorskip("rest_framework")

from rest_framework.response import Response
from rest_framework.views import APIView

from redis_kit.throttling.drf import AnonRateThrottle, BurstSustainedThrottle, ScopedRateThrottle, UserRateThrottle

pytestmark = pytest.mark.alone(7)


class Page(APIView):
    authentication_classes = ()
    throttle_scope = "page"

    def get(self, request):
        return Response("fresh")


def classes(policy):
    """Return one of each class, all with the rate 5/h."""
    found = []
    for base in (AnonRateThrottle, UserRateThrottle, ScopedRateThrottle, BurstSustainedThrottle):
        attributes = {"THROTTLE_RATES": {"page": "5/h"}} if base is ScopedRateThrottle else {"rate": "5/h"}
        found.append(type(f"{policy}{base.__name__}", (base,), attributes | {"on_failure": policy}))
    return found


urlpatterns = [
    path(f"{policy}/{place}", Page.as_view(throttle_classes=[throttle]))
    for policy in ("open", "closed", "local", None)
    for place, throttle in enumerate(classes(policy))
]


@pytest.fixture(autouse=True)
def site(settings):
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = []


def statuses(client, policy, place, times=8):
    return [client.get(f"/{policy}/{place}").status_code for _ in range(times)]


@pytest.mark.parametrize("trouble", ["stop", "freeze"])
@pytest.mark.parametrize("place", range(4))
def test_policies_answer_and_nothing_is_slow_or_an_error(own_kit, client, place, trouble):
    getattr(own_kit.server, trouble)()
    began = time.monotonic()
    found = {policy: statuses(client, policy, place) for policy in ("open", "closed", "local", None)}
    taken = time.monotonic() - began
    own_kit.server.thaw() if trouble == "freeze" else None
    assert found == {"open": [200] * 8, "closed": [429] * 8, "local": [200] * 5 + [429] * 3, None: [200] * 8}
    assert taken < 7  # calls that all wait for a frozen server take 0.25 s each, or have no limit


def test_refusal_of_an_outage_says_when_to_come_again(own_kit, client):
    own_kit.server.stop()
    response = client.get("/closed/1")
    assert response.status_code == 429
    assert response["Retry-After"] == "1"
    assert response.json() == {"detail": "Request was throttled. Expected available in 1 second."}


def test_policy_of_the_settings_holds_where_a_class_has_none(own_kit, client):
    own_kit.options(THROTTLING={"ON_FAILURE": "closed"})
    own_kit.server.stop()
    assert statuses(client, None, 1, times=2) == [429, 429]
    assert statuses(client, "open", 1, times=2) == [200, 200]


def test_server_that_came_back_counts_again(own_kit, client):
    own_kit.server.stop()
    assert statuses(client, "closed", 1, times=1) == [429]
    own_kit.server.start()
    assert statuses(client, "closed", 1, times=6) == [200] * 5 + [429]


def test_key_that_something_else_wrote_to_is_no_error(own_kit, client):
    limit = urlpatterns[1].callback.view_initkwargs["throttle_classes"][0]().throttle()
    with own_kit.server.client() as connection:
        connection.rpush(limit.key("counts"), "foreign")
    assert statuses(client, "open", 1, times=2) == [200, 200]
    assert statuses(client, "closed", 1, times=2) == [429, 429]
