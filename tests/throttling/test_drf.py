"""Throttle classes of Django REST framework with the kit behind them."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured

from redis_kit.core.errors import InvalidValue
from redis_kit.throttling import Ban, InvalidRate, Rate, Throttle
from redis_kit.throttling.http.responses import Verdict
from redis_kit.throttling.throttles import registered
from tests.app.models import User

pytest.importorskip("rest_framework")

from rest_framework import throttling
from rest_framework.exceptions import Throttled
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.test import APIRequestFactory, force_authenticate
from rest_framework.views import APIView

from redis_kit.throttling import drf
from redis_kit.throttling.drf import (
    AnonRateThrottle,
    BurstSustainedThrottle,
    ScopedRateThrottle,
    SimpleRateThrottle,
    UserRateThrottle,
)

NAMES = ("AnonRateThrottle", "ScopedRateThrottle", "SimpleRateThrottle", "UserRateThrottle")


def get(*throttles, user=None, scope=None, headers=None, **extra):
    """Return the response of a view with these throttle classes."""

    class View(APIView):
        authentication_classes = ()
        throttle_classes = throttles
        throttle_scope = scope

        def get(self, request):
            return Response("fresh")

    request = APIRequestFactory().get("/", headers=headers, **extra)
    force_authenticate(request, user)
    return View.as_view()(request)


def statuses(times, *throttles, **options):
    return [get(*throttles, **options).status_code for _ in range(times)]


def limited(base=UserRateThrottle, **attributes):
    return type("Limited", (base,), {"rate": "3/h", **attributes})


@pytest.mark.parametrize("name", NAMES)
def test_class_is_one_of_the_frameworks_own(name):
    ours, theirs = getattr(drf, name), getattr(throttling, name)
    assert issubclass(ours, theirs)
    assert issubclass(ours, SimpleRateThrottle)
    assert ours.scope == theirs.scope
    assert ours.THROTTLE_RATES is api_settings.DEFAULT_THROTTLE_RATES


@pytest.mark.parametrize("name", ["strategi", "onfailure", "on_failures", "bans", "usin", "shadows"])
def test_misspelt_option_is_refused_where_the_class_is_made(name):
    with pytest.raises(InvalidValue, match=f"Limited has no option '{name}'. Did you mean '"):
        limited(**{name: "closed"})


def test_subclass_may_have_attributes_of_its_own():
    assert limited(rates="5/m", strategies=[], banner="", usage=1)


def test_ban_that_is_none_says_how_to_write_one(kit):
    with pytest.raises(InvalidValue, match=r"such as Ban\(after=5, within=60, seconds=600\), or None, not \(1, 2\)"):
        limited(ban=(1, 2))().throttle()


def test_request_over_the_limit_is_429_with_the_frameworks_message(kit):
    responses = [get(limited()) for _ in range(4)]
    assert [one.status_code for one in responses] == [200, 200, 200, 429]
    assert responses[3]["Retry-After"] == "3600"
    assert responses[3].data["detail"] == "Request was throttled. Expected available in 3600 seconds."


def test_view_may_throw_an_exception_of_its_own(kit):
    seen = []

    class View(APIView):
        throttle_classes = [limited(rate="1/h")]

        def get(self, request):
            return Response("fresh")

        def throttled(self, request, wait):
            seen.append(wait)
            raise Throttled(wait, detail="Slowly.")

    found = [View.as_view()(APIRequestFactory().get("/")) for _ in range(2)]
    assert found[1].data["detail"].startswith("Slowly.")
    assert seen == [pytest.approx(3600, abs=5)]


def test_users_count_apart_and_anonymous_ones_by_address(kit):
    ann, joe = User(pk=1), User(pk=2)
    throttle = limited(rate="1/h")
    assert statuses(2, throttle, user=ann) == [200, 429]
    assert statuses(2, throttle, user=joe) == [200, 429]
    assert statuses(2, throttle) == [200, 429]
    assert statuses(2, throttle, REMOTE_ADDR="10.0.0.9") == [200, 429]


def test_throttle_of_anonymous_requests_leaves_users_alone(kit):
    throttle = limited(AnonRateThrottle, rate="1/h")
    assert statuses(3, throttle, user=User(pk=1)) == [200] * 3
    assert statuses(2, throttle) == [200, 429]


def test_scopes_of_views_have_rates_of_their_own(kit):
    throttle = type("Scoped", (ScopedRateThrottle,), {"THROTTLE_RATES": {"uploads": "1/h", "reads": "2/h"}})
    assert statuses(2, throttle, scope="uploads") == [200, 429]
    assert statuses(3, throttle, scope="reads") == [200, 200, 429]
    assert statuses(5, throttle) == [200] * 5
    with pytest.raises(ImproperlyConfigured, match="writes"):
        get(throttle, scope="writes")


def test_name_of_the_views_scope_may_be_another(kit):
    throttle = limited(ScopedRateThrottle, scope_attr="throttle_classes_scope", THROTTLE_RATES={"a": "1/h"})
    view = type("View", (), {"throttle_classes_scope": "a"})
    request = APIRequestFactory().get("/")
    request.user = AnonymousUser()
    assert [throttle().allow_request(request, view) for _ in range(2)] == [True, False]


def test_rates_come_from_the_settings_by_scope(kit):
    throttle = type("Daily", (UserRateThrottle,), {"scope": "daily", "THROTTLE_RATES": {"daily": "2/d", "user": None}})
    assert statuses(3, throttle) == [200, 200, 429]
    unlimited = type("Unlimited", (throttle,), {"scope": "user"})
    assert statuses(9, unlimited) == [200] * 9
    with pytest.raises(ImproperlyConfigured, match="hourly"):
        type("Hourly", (throttle,), {"scope": "hourly"})()
    with pytest.raises(ImproperlyConfigured, match="scope"):
        type("Nameless", (throttle,), {"scope": None})()


@pytest.mark.parametrize(
    ("rate", "numbers"),
    [
        ("10/s", (10, 1)),
        ("10/sec", (10, 1)),
        ("10/minutes", (10, 60)),
        ("10/hour", (10, 3600)),
        ("10/days", (10, 86_400)),
        ("10/month", (10, 60)),  # the first letter is all that the framework reads
        ("10/moment", (10, 60)),
        ("10 per month", (10, 2_592_000)),
        ("15/5m", (15, 300)),
        ("10/300", (10, 300)),
        ("10/week", (10, 604_800)),
        ("5/min; 100/hours", (5, 60)),
        (["5/min", "100/hours"], (5, 60)),
        ((7, 30), (7, 30)),
        (None, (None, None)),
    ],
)
def test_rates_are_those_of_the_framework_and_of_the_kit(rate, numbers):
    throttle = limited(rate="1/s")()
    assert throttle.parse_rate(rate) == numbers


def test_wrong_rate_is_named():
    with pytest.raises(InvalidRate, match="10/x"):
        limited(rate="10/x")()


def test_subclass_that_reads_rates_in_its_own_way_is_believed(kit):
    def parse_rate(self, rate):
        number, _, seconds = rate.partition(" in ")
        return int(number), int(seconds)

    throttle = limited(rate="2 in 90", parse_rate=parse_rate)
    responses = [get(throttle) for _ in range(3)]
    assert [one.status_code for one in responses] == [200, 200, 429]
    assert responses[2]["Retry-After"] == "90"


def test_subclass_may_set_other_numbers_for_a_request(kit):
    class Generous(UserRateThrottle):
        rate = "1/h"

        def allow_request(self, request, view):
            if request.user.is_authenticated:
                self.num_requests, self.duration = self.parse_rate("3/m")
            return super().allow_request(request, view)

    assert statuses(2, Generous) == [200, 429]
    assert statuses(4, Generous, user=User(pk=1)) == [200, 200, 200, 429]


def test_key_of_a_subclass_is_what_counts(kit):
    class Tenants(SimpleRateThrottle):
        scope, rate = "tenants", "1/h"

        def get_cache_key(self, request, view):
            return request.headers.get("Tenant")

    assert statuses(2, Tenants, headers={"Tenant": "a"}) == [200, 429]
    assert statuses(2, Tenants, headers={"Tenant": "b"}) == [200, 429]
    assert statuses(3, Tenants) == [200] * 3


def test_key_that_a_subclass_made_is_nobodys_ident(kit):
    class Mixed(UserRateThrottle):
        rate = "1/h"

        def get_cache_key(self, request, view):
            return "tenant" if request.user.is_authenticated else super().get_cache_key(request, view)

    assert statuses(1, Mixed, user=User(pk=1)) == [200]
    assert statuses(2, Mixed, headers={"X-Forwarded-For": "tenant"}) == [200, 429]


def test_clock_of_a_subclass_decides(kit):
    class Frozen(UserRateThrottle):
        rate, seconds = "3/m", 0

        def timer(self):
            return self.seconds

    waits = []
    for seconds in (0, 20, 40, 50, 59, 60, 61):
        Frozen.seconds = seconds
        waits.append(get(Frozen).get("Retry-After"))
    assert waits == [None, None, None, "10", "1", None, "19"]


def test_clock_of_an_instance_decides(kit):
    throttle = limited(rate="1/m")()
    request = APIRequestFactory().get("/")
    request.user = AnonymousUser()
    throttle.timer = lambda: 100
    assert [throttle.allow_request(request, None) for _ in range(2)] == [True, False]
    assert (throttle.now, throttle.wait()) == (100, 60.0)
    throttle.timer = lambda: 160
    assert throttle.allow_request(request, None)


def test_hooks_see_key_decision_and_as_many_times_as_there_are_calls(kit):
    seen = []

    class Telling(UserRateThrottle):
        rate = "2/h"

        def throttle_success(self):
            allowed = super().throttle_success()
            seen.append((self.key, allowed, self.num_requests - len(self.history), self.decision.remaining))
            return allowed

        def throttle_failure(self):
            seen.append((self.key, "no", self.num_requests - len(self.history), self.decision.remaining))
            return super().throttle_failure()

    statuses(3, Telling, user=User(pk=7))
    assert seen == [("throttle_user_7", True, 1, 1), ("throttle_user_7", True, 0, 0), ("throttle_user_7", "no", 0, 0)]


def test_hook_may_let_a_refused_request_pass(kit):
    throttle = limited(rate="1/h", throttle_failure=lambda self: True)
    assert statuses(3, throttle) == [200] * 3


def test_wait_of_an_allowed_request_is_the_pace_that_would_last(kit):
    throttle = limited(rate="4/m", timer=lambda self: 50.0)()
    request = APIRequestFactory().get("/")
    request.user = AnonymousUser()
    waits = []
    for _ in range(5):
        throttle.allow_request(request, None)
        waits.append(throttle.wait())
    assert waits == [15.0, 20.0, 30.0, 60.0, 60.0]


def test_history_that_is_set_by_hand_is_what_wait_reads(kit):
    throttle = limited(rate="1/m")()
    throttle.history = []
    assert throttle.wait() == 30.0
    throttle.now, throttle.history = 5, [5, 5, 5]
    assert throttle.wait() is None
    assert throttle.history == [5, 5, 5]


def test_limit_of_0_never_allows_and_gives_no_time_to_come_again(kit):
    response = get(limited(rate="0/m"))
    assert (response.status_code, "Retry-After" in response) == (429, False)
    assert response.data["detail"] == "Request was throttled."


@pytest.mark.parametrize(
    ("rate", "strategy"),
    [
        ("10000/d", "sliding_log"),
        ("10001/d", "sliding_counter"),
        ("5/m; 100000/day", "sliding_counter"),
        ("5/m burst 9", "gcra"),
        ("5/m burst 9; 100000/d", "gcra"),
    ],
)
def test_strategy_fits_the_rate(rate, strategy):
    assert limited(rate=rate)().throttle().strategy == strategy
    assert limited(rate="5/m", strategy="fixed_window")().throttle().strategy == "fixed_window"


def test_large_limit_counts(kit):
    response = get(limited(rate="100000/day"))
    assert response.status_code == 200
    assert "r=99999" in response["RateLimit"]


def test_attributes_of_a_throttle_may_be_set(kit):
    assert statuses(3, limited(rate="1/h", shadow=True)) == [200] * 3
    banning = limited(rate="1/m", ban=Ban(2, 60, 600), scope="banning")
    kit.options(THROTTLING={"REMEMBER": 0})
    responses = [get(banning) for _ in range(4)]
    assert [one.status_code for one in responses] == [200, 429, 429, 429]
    assert int(responses[3]["Retry-After"]) == pytest.approx(600, abs=5)


def test_instances_share_one_throttle_which_is_named_after_the_scope():
    first, second = limited(scope="mine")().throttle(), limited(scope="mine")().throttle()
    assert first is second
    assert first.name == "drf.mine"
    assert limited(scope=None)().throttle().name == "drf.Limited"
    assert first in registered.values()
    assert first.rates == (Rate(3, 3600),)


def test_identity_can_be_reset_under_its_ident(kit):
    throttle = limited(rate="1/h")
    assert statuses(2, throttle, user=User(pk=42)) == [200, 429]
    assert throttle().throttle().reset("ident:42")
    assert Throttle("drf.user", "1/h", strategy="sliding_log").peek("ident:42")
    assert statuses(2, throttle, user=User(pk=42)) == [200, 429]


def test_several_rates_are_one_decision_which_counts_against_all_or_none(kit):
    throttle = type(
        "Both", (BurstSustainedThrottle,), {"THROTTLE_RATES": {"burst": "2/min", "sustained": "3/day"}, "seconds": 0}
    )
    throttle.timer = lambda self: self.seconds
    assert statuses(4, throttle) == [200, 200, 429, 429]
    throttle.seconds = 60
    assert statuses(2, throttle) == [200, 429]  # a class of its own would have counted the refused ones too
    throttle.seconds = 120
    response = get(throttle)
    assert response["Retry-After"] == str(86_400 - 120)
    assert "2/m" in response["RateLimit-Policy"]
    assert "3/d" in response["RateLimit-Policy"]


def test_scopes_of_several_rates_have_to_be_in_the_settings():
    rates = {"burst": "2/m", "sustained": None}
    throttle = type("Both", (BurstSustainedThrottle,), {"THROTTLE_RATES": rates})
    assert throttle().throttle().rates == (Rate(2, 60),)
    assert type("Other", (throttle,), {"scopes": ("sustained",)})().rate is None
    assert limited(BurstSustainedThrottle, rate="2/s; 5/m")().throttle().rates == (Rate(2, 1), Rate(5, 60))
    with pytest.raises(ImproperlyConfigured, match="'weekly'"):
        type("Other", (throttle,), {"scopes": ("burst", "weekly")})()


def test_each_throttle_takes_one_round_trip_and_a_remembered_refusal_none(kit, commands):
    first, second = limited(rate="2/h"), limited(rate="9/h", scope="second")
    get(first, second)  # brings the script to the server
    with commands(kit) as sent:
        get(first, second)
    assert sent == ["EVALSHA"] * 2
    get(first)
    with commands(kit) as sent:
        assert statuses(5, first) == [429] * 5
    assert sent == []


def test_throttle_classes_that_compete_admit_exactly_as_many_as_allowed(kit):
    throttle = limited(rate="10/h")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: get(throttle).status_code, range(40)))
    assert sorted(found) == [200] * 10 + [429] * 30


def test_responses_carry_the_limits(kit):
    first, second = limited(rate="1/m"), limited(rate="9/h", scope="hourly")
    allowed, refused = get(first, second), get(first, second)
    assert allowed["RateLimit-Policy"] == '"user";q=1;w=60, "hourly";q=9;w=3600'
    assert allowed["RateLimit"] == '"user";r=0;t=60, "hourly";r=8;t=3600'
    assert refused["RateLimit"].startswith('"user";r=0;t=')
    assert allowed["Allow"] == "GET, HEAD, OPTIONS"
    assert allowed["Content-Type"] == get(limited(rate=None, THROTTLE_RATES={"user": None}))["Content-Type"]
    kit.options(THROTTLING={"HEADERS": "none"})
    assert "RateLimit" not in get(first, second)


def test_fields_of_a_response_do_not_leak_into_fixed_headers_of_a_view(kit):
    class View(APIView):
        throttle_classes = [limited()]
        default_response_headers = {"X-Api": "1"}

        def get(self, request):
            return Response("fresh")

    responses = [View.as_view()(APIRequestFactory().get("/")) for _ in range(2)]
    assert [one["RateLimit-Policy"] for one in responses] == ['"user";q=3;w=3600'] * 2
    assert View.default_response_headers == {"X-Api": "1"}


def test_request_knows_what_was_decided(kit):
    request = APIRequestFactory().get("/")
    first, second = limited(rate="1/h"), limited(rate="9/h", scope="second")
    for remaining in (0, 0):
        request.throttles = []
        type("View", (APIView,), {"throttle_classes": [first, second], "get": lambda *_: Response()}).as_view()(request)
        assert request.throttle.remaining == remaining
    assert [type(one) for one in request.throttles] == [Verdict, Verdict]
    assert not request.throttle


@pytest.mark.parametrize(("proxies", "ident"), [(None, "1.1.1.1,2.2.2.2"), (0, "9.9.9.9"), (1, "2.2.2.2")])
def test_ident_is_the_frameworks(kit, monkeypatch, proxies, ident):
    monkeypatch.setattr(api_settings, "NUM_PROXIES", proxies, raising=False)
    request = APIRequestFactory().get("/", headers={"X-Forwarded-For": "1.1.1.1, 2.2.2.2"}, REMOTE_ADDR="9.9.9.9")
    assert limited()().get_ident(request) == ident


def test_ident_is_the_kits_where_proxies_are_trusted(kit, monkeypatch):
    monkeypatch.setattr(api_settings, "NUM_PROXIES", 0, raising=False)
    kit.options(TRUSTED_PROXIES=1)
    throttle, factory = limited()(), APIRequestFactory()
    request = factory.get("/", headers={"X-Forwarded-For": "1.1.1.1, 2001:db8::7"}, REMOTE_ADDR="9.9.9.9")
    assert throttle.get_ident(request) == "2001:db8::/64"
    assert throttle.get_ident(factory.get("/", REMOTE_ADDR="")) == "invalid"


def test_request_without_an_address_counts_with_its_like(kit):
    assert statuses(2, limited(rate="1/h"), REMOTE_ADDR="") == [200, 429]


def test_throttling_that_is_not_enabled_admits(kit):
    kit.options(THROTTLING={"ENABLED": False})
    assert statuses(9, limited()) == [200] * 9


def test_no_address_and_no_user_stands_in_a_key(kit):
    get(limited(), REMOTE_ADDR="10.11.12.13")
    assert kit.keys()
    assert not any("10.11" in key for key in kit.keys())
    assert math.isclose(limited()().throttle().peek("ident:10.11.12.13").remaining, 2)
