"""Throttle classes of Django Ninja with the kit behind them."""

import asyncio
import secrets
import threading
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured
from django.test import RequestFactory

from redis_kit.core.errors import InvalidValue
from redis_kit.throttling import Ban, InvalidRate, Rate
from redis_kit.throttling.throttles import registered

pytest.importorskip("ninja")

from ninja import NinjaAPI, Router, throttling
from ninja.conf import settings as ninja_settings
from ninja.security import APIKeyHeader
from ninja.testing import TestAsyncClient, TestClient

from redis_kit.throttling import ninja
from redis_kit.throttling.ninja import AnonRateThrottle, AuthRateThrottle, SimpleRateThrottle, UserRateThrottle

NAMES = ("AnonRateThrottle", "AuthRateThrottle", "SimpleRateThrottle", "UserRateThrottle")


def asked(*, auth=None, user=None, address="9.9.9.9", **headers):
    request = RequestFactory().get("/", headers=headers, REMOTE_ADDR=address)
    request.auth, request.user = auth, user or AnonymousUser()
    return request


def answers(throttle, times=2, **who):
    return [throttle.allow_request(asked(**who)) for _ in range(times)]


def built(**options):
    return NinjaAPI(urls_namespace=secrets.token_hex(4), **options)  # the framework wants each to have one of its own


def guarded(*throttles):
    """Return an API with one operation of each kind behind throttles."""
    api = built(throttle=list(throttles))

    @api.get("/sync")
    def sync(request):
        return "fresh"

    @api.get("/async")
    async def asynchronous(request):
        return "fresh"

    return api


@pytest.mark.parametrize("name", NAMES)
def test_class_is_one_of_the_frameworks_own(name):
    ours, theirs = getattr(ninja, name), getattr(throttling, name)
    assert issubclass(ours, theirs)
    assert issubclass(ours, SimpleRateThrottle)
    assert ours.scope == theirs.scope
    assert ours.THROTTLE_RATES is throttling.SimpleRateThrottle.THROTTLE_RATES


def test_request_over_the_limit_is_429_with_the_time_to_come_again(kit):
    client = TestClient(guarded(AnonRateThrottle("2/h")))
    responses = [client.get("/sync") for _ in range(3)]
    assert [one.status_code for one in responses] == [200, 200, 429]
    assert responses[2]["Retry-After"] == "3600"
    assert responses[2].json() == {"detail": "Too many requests."}


def test_async_operations_are_limited_too(kit):
    client = TestAsyncClient(guarded(AnonRateThrottle("2/h")))

    async def several():
        return [await client.get("/async") for _ in range(3)]

    responses = asyncio.run(several())
    assert [one.status_code for one in responses] == [200, 200, 429]
    assert responses[2]["Retry-After"] == "3600"


def test_throttles_of_api_router_and_operation_are_all_of_use(kit):
    api, router = built(throttle=AnonRateThrottle("3/h")), Router()

    def view(request):
        return "fresh"

    api.get("/api")(view)
    api.get("/operation", throttle=[AnonRateThrottle("1/h"), AnonRateThrottle("9/h")])(view)
    router.get("/page")(view)
    api.add_router("/router", router, throttle=AnonRateThrottle("2/h"))
    client = TestClient(api)
    statuses = {
        place: [client.get(place).status_code for _ in range(4)] for place in ("/api", "/operation", "/router/page")
    }
    assert statuses == {
        "/api": [200, 200, 200, 429],
        "/operation": [200, 429, 429, 429],
        "/router/page": [200, 200, 429, 429],
    }


def test_address_auth_and_user_are_counted_separately(kit):
    anonymous, auth, user = AnonRateThrottle("1/h"), AuthRateThrottle("1/h"), UserRateThrottle("1/h")
    known = [SimpleNamespace(pk=number, is_authenticated=True) for number in (1, 2)]
    assert answers(anonymous) == answers(anonymous, address="9.9.9.8") == [True, False]
    assert answers(anonymous, auth="key") == [True, True]
    assert answers(auth) == answers(auth, auth="first") == answers(auth, auth="second") == [True, False]
    assert answers(user) == answers(user, user=known[0]) == answers(user, user=known[1]) == [True, False]


def test_auth_of_an_operation_is_what_counts(kit):
    class Key(APIKeyHeader):
        param_name = "X-Key"

        def authenticate(self, request, key):
            return key

    api = built(auth=Key(), throttle=AuthRateThrottle("1/h"))
    api.get("/page")(lambda request: "fresh")
    client = TestClient(api)
    statuses = [client.get("/page", headers={"X-Key": key}).status_code for key in ("a", "a", "b")]
    assert statuses == [200, 429, 200]


def test_rate_comes_from_the_settings_without_one(kit, monkeypatch):
    monkeypatch.setattr(AnonRateThrottle, "THROTTLE_RATES", {"anon": "1/h"})
    assert answers(AnonRateThrottle()) == [True, False]
    monkeypatch.setattr(AnonRateThrottle, "THROTTLE_RATES", {"anon": None})
    assert answers(AnonRateThrottle(), times=5) == [True] * 5
    monkeypatch.setattr(AnonRateThrottle, "THROTTLE_RATES", {})
    with pytest.raises(ImproperlyConfigured, match="anon"):
        AnonRateThrottle()
    assert AuthRateThrottle().throttle().rates == (Rate(10_000, 86_400),)


@pytest.mark.parametrize(
    ("rate", "numbers"),
    [
        ("10/s", (10, 1)),
        ("10/5min", (10, 300)),
        ("10/2hour", (10, 7200)),
        ("10/100", (10, 100)),
        ("100/1d", (100, 86_400)),
        ("100 per day", (100, 86_400)),
        ("5/m; 100/h", (5, 60)),
        ("10/month", (10, 2_592_000)),
        (None, (None, None)),
    ],
)
def test_rates_are_those_of_the_framework_and_of_the_kit(rate, numbers):
    assert SimpleRateThrottle("1/s").parse_rate(rate) == numbers


def test_what_is_wrong_fails_where_the_api_is_built():
    with pytest.raises(InvalidRate, match="10/x"):
        AnonRateThrottle("10/x")
    with pytest.raises(InvalidValue, match="on_failure"):
        type("Wrong", (AnonRateThrottle,), {"on_failure": "never"})("1/m")
    with pytest.raises(InvalidValue, match="gcrb"):
        type("Wrong", (AnonRateThrottle,), {"strategy": "gcrb"})("1/m")


@pytest.mark.parametrize("rate", [0, "", []])
def test_empty_rate_is_not_the_rate_of_the_settings(rate):
    with pytest.raises(InvalidRate, match="never allows"):
        AnonRateThrottle(rate)


def test_several_rates_are_one_decision(kit):
    throttle = AnonRateThrottle("2/m; 3/h")
    throttle.timer = lambda: 0
    assert answers(throttle, times=4) == [True, True, False, False]
    throttle.timer = lambda: 60
    assert answers(throttle) == [True, False]
    assert throttle.wait() == 3540.0


def test_clock_of_an_instance_decides(kit):
    throttle = AuthRateThrottle("5/m")
    throttle.timer = lambda: 0
    assert answers(throttle, times=6) == [True] * 5 + [False]
    assert throttle.wait() == 60
    throttle.timer = lambda: 30
    assert answers(throttle) == [False, False]
    assert throttle.wait() == 30
    throttle.timer = lambda: 60
    assert answers(throttle) == [True, True]


def test_wait_reads_a_history_that_is_set_by_hand(kit):
    throttle = AnonRateThrottle("1/s")
    throttle.timer = lambda: 0
    assert answers(throttle) == [True, False]
    throttle.history = []
    assert throttle.wait() == 0.5
    throttle.now, throttle.history = 0, [0] * 5
    assert throttle.wait() is None


def test_limit_of_0_gives_no_time_to_come_again(kit):
    client = TestClient(guarded(AnonRateThrottle("0/m")))
    response = client.get("/sync")
    assert response.status_code == 429
    assert "Retry-After" not in response.headers


def test_one_instance_has_a_decision_for_each_thread(kit):
    throttle, turn, waits = AnonRateThrottle("1/h"), threading.Barrier(2), {}

    def call(name, times):
        found = answers(throttle, times=times, address=name)
        turn.wait(10)  # both have asked before either looks
        waits[name] = (found[-1], len(throttle.history), throttle.wait())

    threads = [threading.Thread(target=call, args=(f"9.9.9.{times}", times)) for times in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert waits == {"9.9.9.1": (True, 1, 3600.0), "9.9.9.2": (False, 1, pytest.approx(3600, abs=5))}
    assert throttle.decision is None


def test_keys_and_hooks_of_a_subclass_are_of_use(kit):
    seen = []

    class Tenants(SimpleRateThrottle):
        scope = "tenants"

        def get_cache_key(self, request):
            return request.headers.get("Tenant")

        def throttle_success(self):
            seen.append((self.key, self.decision.remaining))
            return super().throttle_success()

    throttle = Tenants("1/h")
    assert answers(throttle, Tenant="a") == answers(throttle, Tenant="b") == [True, False]
    assert answers(throttle) == [True, True]
    assert seen == [("a", 0), ("b", 0)]


def test_attributes_of_a_throttle_may_be_set(kit):
    attributes = {"strategy": "gcra", "shadow": True, "ban": Ban(1, 60, 600), "scope": "special"}
    throttle = type("Special", (AnonRateThrottle,), attributes)("1/h")
    limit = throttle.throttle()
    assert (limit.name, limit.strategy, limit.shadow, limit.ban) == ("ninja.special", "gcra", True, Ban(1, 60, 600))
    assert limit in registered.values()
    assert answers(throttle, times=3) == [True] * 3
    assert AnonRateThrottle("20000/d").throttle().strategy == "sliding_counter"


def test_request_knows_what_was_decided(kit):
    request = asked()
    assert UserRateThrottle("9/h").allow_request(request)
    assert not AnonRateThrottle("0/h").allow_request(request)
    assert [one.throttle.name for one in request.throttles] == ["ninja.user", "ninja.anon"]
    assert not request.throttle


def test_a_request_is_one_round_trip_and_a_remembered_refusal_none(kit, commands):
    throttle = AnonRateThrottle("2/h")
    answers(throttle, times=1)
    with commands(kit) as sent:
        answers(throttle, times=1)
    assert sent == ["EVALSHA"]
    answers(throttle, times=1)
    with commands(kit) as sent:
        assert answers(throttle, times=5) == [False] * 5
    assert sent == []


@pytest.mark.parametrize(("proxies", "ident"), [(None, "1.1.1.1,2.2.2.2"), (0, "9.9.9.9"), (1, "2.2.2.2")])
def test_ident_is_the_frameworks(kit, monkeypatch, proxies, ident):
    monkeypatch.setattr(ninja_settings, "NUM_PROXIES", proxies)
    request = asked(**{"X-Forwarded-For": "1.1.1.1, 2.2.2.2"})
    assert AnonRateThrottle("1/h").get_ident(request) == ident


def test_ident_is_the_kits_where_proxies_are_trusted(kit):
    kit.options(TRUSTED_PROXIES=["10.0.0.0/8"])
    request = asked(address="10.0.0.1", **{"X-Forwarded-For": "1.1.1.1, 2.2.2.2, 10.0.0.7"})
    assert AnonRateThrottle("1/h").get_ident(request) == "2.2.2.2"
    assert AnonRateThrottle("1/h").get_ident(asked(address="")) == "invalid"
