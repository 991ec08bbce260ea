"""The arguments of django-ratelimit: one contract for the kit's functions and, where it is installed, for its own."""

import asyncio
import inspect
import math
import re
import types
from copy import copy
from functools import partial
from importlib.resources import files

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.http import HttpResponse
from django.test import AsyncClient, Client, RequestFactory
from django.urls import path
from django.utils.decorators import method_decorator
from django.views import View

from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.throttling import InvalidRate, compat, identity
from redis_kit.throttling.checks import UNREAD, messages
from redis_kit.throttling.throttles import registered
from tests.app.models import User

HERE = __name__
get, post = RequestFactory().get, RequestFactory().post


def original():
    """Return what the kit's functions are like."""
    core = pytest.importorskip("django_ratelimit.core")
    from django_ratelimit import ALL, UNSAFE
    from django_ratelimit.decorators import ratelimit
    from django_ratelimit.exceptions import Ratelimited

    return types.SimpleNamespace(
        ratelimit=ratelimit,
        is_ratelimited=core.is_ratelimited,
        get_usage=core.get_usage,
        ALL=ALL,
        UNSAFE=UNSAFE,
        Ratelimited=Ratelimited,
    )


@pytest.fixture(params=["kit", "original"])
def api(request, kit, settings):
    """The kit's functions and the original ones, which count in the cache of the process."""
    if request.param == "kit":
        return compat
    location = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": kit.prefix}
    settings.CACHES = {"default": location}
    return original()


def answers(view, *requests):
    return [view(request) for request in requests]


def limited(request):
    return request.limited


def fresh(asked):
    """Return a request as it was: what a limit tells stays on the one it was asked about."""
    assert asked.POST is not None  # read once, for all copies
    return copy(asked)


def by_user(asked, user):
    asked.user = user
    return asked


def reversed_address(group, request):
    return request.META["REMOTE_ADDR"][::-1]


def two_for_users(group, request):
    return "2/d" if request.user.is_authenticated else (1, 86_400)


def test_request_is_limited_if_the_decorator_does_not_block(api):
    view = api.ratelimit(key="ip", rate="2/d", block=False)(limited)
    assert answers(view, get("/"), get("/"), get("/"), get("/")) == [False, False, True, True]
    assert answers(view, get("/", REMOTE_ADDR="10.0.0.9")) == [False]


def test_blocking_raises_a_permission_denied(api):
    view = api.ratelimit(key="ip", rate="1/d")(limited)
    assert view(get("/")) is False
    asked = get("/")
    with pytest.raises(api.Ratelimited) as caught:
        view(asked)
    assert isinstance(caught.value, PermissionDenied)
    assert asked.limited is True


@pytest.mark.parametrize("rate", ["1/d", "1/1d", "1/86400", "1/86400s", (1, 86_400), lambda group, request: "1/d"])
def test_forms_of_a_rate(api, rate):
    view = api.ratelimit(key="ip", rate=rate, block=False)(limited)
    assert answers(view, get("/"), get("/")) == [False, True]


@pytest.mark.parametrize("rate", [None, lambda group, request: None])
def test_no_rate_is_no_limit(api, rate):
    view = api.ratelimit(key="ip", rate=rate, block=False)(limited)
    assert answers(view, *[get("/") for _ in range(5)]) == [False] * 5
    assert api.get_usage(get("/"), group="a", key="ip", rate=rate) is None


@pytest.mark.parametrize("rate", ["0/s", "0/m", (0, 1), lambda group, request: "0/d"])
def test_rate_of_nothing_blocks_all(api, rate):
    view = api.ratelimit(key="ip", rate=rate, block=False)(limited)
    assert answers(view, get("/"), get("/")) == [True, True]


@pytest.mark.parametrize("rate", [two_for_users, f"{HERE}.two_for_users"])
def test_rate_of_a_function_of_group_and_request(api, rate):
    view = api.ratelimit(key="user_or_ip", rate=rate, block=False)(limited)
    users, strangers = partial(by_user, user=User(pk=1)), partial(by_user, user=AnonymousUser())
    assert answers(view, *[strangers(get("/")) for _ in range(2)]) == [False, True]
    assert answers(view, *[users(get("/")) for _ in range(3)]) == [False, False, True]


@pytest.mark.parametrize(
    ("key", "first", "second"),
    [
        ("ip", get("/", REMOTE_ADDR="10.0.0.1"), get("/", REMOTE_ADDR="10.0.0.2")),
        ("ip", get("/", REMOTE_ADDR="2001:db8::1"), get("/", REMOTE_ADDR="2001:db8:0:1::1")),
        ("user", by_user(get("/"), User(pk=1)), by_user(get("/"), User(pk=2))),
        ("user_or_ip", by_user(get("/"), User(pk=1)), by_user(get("/"), AnonymousUser())),
        ("get:q", get("/?q=a"), get("/?q=b")),
        ("get:q", get("/?q=a"), get("/")),
        ("post:q", post("/", {"q": "a"}), post("/", {"q": "b"})),
        ("header:x-api-key", get("/", headers={"X-Api-Key": "a"}), get("/", headers={"X-Api-Key": "b"})),
        ("header:x-api-key", get("/", headers={"X-Api-Key": "a"}), get("/")),
        (reversed_address, get("/", REMOTE_ADDR="10.0.0.1"), get("/", REMOTE_ADDR="10.0.0.2")),
        (f"{HERE}.reversed_address", get("/", REMOTE_ADDR="10.0.0.1"), get("/", REMOTE_ADDR="10.0.0.2")),
        (lambda group, request: request.GET.get("q", ""), get("/"), get("/?q=a")),
    ],
)
def test_keys_distinguish_identities(api, key, first, second):
    view = api.ratelimit(group="g", key=key, rate="1/d", block=False)(limited)
    assert answers(view, fresh(first), fresh(second)) == [False, False]
    assert answers(view, fresh(first), fresh(second)) == [True, True]


def test_addresses_of_one_network_are_one_identity(api):
    view = api.ratelimit(key="ip", rate="1/d", block=False)(limited)
    assert answers(view, *[get("/", REMOTE_ADDR=f"2001:db8::{last}") for last in ("1", "ffff")]) == [False, True]


@pytest.mark.parametrize(
    ("method", "counted", "passed"),
    [
        ("POST", "post", "get"),
        ("post", "post", "get"),
        (["POST", "PUT"], "put", "get"),
        (("GET",), "get", "post"),
        ("UNSAFE", "delete", "head"),
        ("UNSAFE", "patch", "options"),
        ("ALL", "options", None),
    ],
)
def test_methods(api, method, counted, passed):
    method = getattr(api.ratelimit, method, method) if isinstance(method, str) else method
    view = api.ratelimit(group="g", key="ip", rate="1/d", method=method, block=False)(limited)
    asked = getattr(RequestFactory(), counted)
    assert answers(view, asked("/"), asked("/")) == [False, True]
    if passed:
        assert answers(view, getattr(RequestFactory(), passed)("/")) == [False]


def test_method_that_is_unknown_is_refused(kit):
    with pytest.raises(InvalidValue, match="methods contains GTE"):
        compat.ratelimit(key="ip", rate="1/d", method="GTE")
    with pytest.raises(InvalidValue, match="methods contains GTE"):
        compat.is_ratelimited(get("/"), group="g", key="ip", rate="1/d", method=["GTE"])


def test_head_counts_as_get(kit):
    view = compat.ratelimit(key="ip", rate="1/d", method="GET", block=False)(limited)
    assert answers(view, get("/"), RequestFactory().head("/")) == [False, True]


def test_order_and_case_of_methods_make_no_difference_and_the_set_does(api):
    def view(method):
        return api.ratelimit(group="g", key="ip", rate="1/d", method=method, block=False)(limited)

    assert answers(view(["GET", "POST"]), get("/")) == [False]
    assert answers(view(("post", "get")), get("/")) == [True]
    assert answers(view("GET"), get("/")) == [False]
    assert answers(view(api.ALL), get("/")) == [False]


def test_decorators_on_each_other_are_put_together(api):
    inner = api.ratelimit(rate="10/d", block=False, key=lambda group, request: "day")(limited)
    view = api.ratelimit(rate="1/d", block=False, key=lambda group, request: "min")(inner)
    assert answers(view, get("/"), get("/")) == [False, True]


def test_views_count_apart_and_those_of_a_group_together(api):
    def other(request):
        return request.limited

    one = api.ratelimit(key="ip", rate="1/d", block=False)
    assert answers(one(limited), get("/")) == answers(one(other), get("/")) == [False]
    assert answers(one(limited), get("/")) == [True]
    grouped = api.ratelimit(group="g", key="ip", rate="1/d", block=False)
    assert answers(grouped(limited), get("/")) == [False]
    assert answers(grouped(other), get("/")) == [True]


def test_rates_of_a_group_count_apart(api):
    for rate in ("1/d", "1/2d", "2/d"):
        view = api.ratelimit(group="g", key="ip", rate=rate, block=False)(limited)
        assert answers(view, get("/")) == [False]


def test_classes_and_their_methods(api):
    one = api.ratelimit(key="ip", rate="1/d", block=False)

    class Method(View):
        @method_decorator(one)
        def get(self, request):
            return request.limited

        @method_decorator(one)
        def post(self, request):
            return request.limited

    class Sibling(Method):
        pass

    @method_decorator(one, name="get")
    class Named(View):
        def get(self, request):
            return request.limited

    class Plain(View):
        def get(self, request):
            return request.limited

    for view in (Method.as_view(), Named.as_view(), one(Plain.as_view())):
        assert answers(view, get("/")) == [False]
        assert answers(view, get("/")) == [True]
    assert answers(Method.as_view(), post("/")) == [False]
    assert answers(Sibling.as_view(), get("/")) == [False]


def test_looking_counts_nothing_and_says_whether_the_limit_was_passed(api):
    ask = partial(api.is_ratelimited, get("/"), group="a", key="ip", rate="2/d")
    assert [ask(), ask(increment=True), ask(increment=True)] == [False, False, False]
    assert [ask(), ask()] == [False, False]
    assert [ask(increment=True), ask(), ask()] == [True, True, True]


def test_usage(api):
    ask = partial(api.get_usage, get("/"), group="a", key="ip", rate="2/d")
    found = [ask(), *(ask(increment=True) for _ in range(3)), ask()]
    assert [one["count"] for one in found] == [0, 1, 2, 3, 3]
    assert [one["should_limit"] for one in found] == [False, False, False, True, True]
    assert all(one["limit"] == 2 and 0 <= one["time_left"] <= 86_400 for one in found)
    assert all(set(one) == {"count", "limit", "should_limit", "time_left"} for one in found)
    assert all(type(one["time_left"]) is int for one in found)


def test_usage_of_a_view_and_of_its_group(api):
    view = api.ratelimit(key="ip", rate="5/d")(limited)
    assert view(get("/")) is False
    assert api.get_usage(get("/"), fn=limited, key="ip", rate="5/d")["count"] == 1
    assert api.get_usage(get("/"), group="other", key="ip", rate="5/d")["count"] == 0


def test_usage_of_another_method_is_none(api):
    assert api.get_usage(get("/"), group="a", key="ip", rate="1/d", method="POST") is None
    assert api.is_ratelimited(get("/"), group="a", key="ip", rate="0/s", method="POST", increment=True) is False


@pytest.mark.parametrize("arguments", [{"key": "ip"}, {"group": "a", "key": None}, {"group": "a", "key": ""}])
def test_missing_group_and_missing_key_are_wrong_configurations(api, arguments):
    with pytest.raises(ImproperlyConfigured):
        api.get_usage(get("/"), **{"rate": "1/d", **arguments})


@pytest.mark.parametrize("key", ["users", "cookie:x", "IP"])
def test_unknown_key_is_a_wrong_configuration(api, key):
    with pytest.raises(ImproperlyConfigured):
        api.ratelimit(key=key, rate="1/d")(limited)(get("/"))


def test_decorator_without_a_key_is_a_wrong_configuration_at_the_request(api):
    view = api.ratelimit(rate="1/d")(limited)
    with pytest.raises(ImproperlyConfigured):
        view(get("/"))


def test_switched_off(api, settings):
    settings.RATELIMIT_ENABLE = False
    view = api.ratelimit(key="ip", rate="0/s")(limited)
    assert answers(view, get("/"), get("/")) == [False, False]
    assert api.get_usage(get("/"), group="a", key="ip", rate="0/s") is None


class TooMany(Exception):
    pass


@pytest.mark.parametrize("named", [TooMany, f"{HERE}.TooMany"])
def test_exception_of_the_settings(api, settings, named):
    settings.RATELIMIT_EXCEPTION_CLASS = named
    view = api.ratelimit(key="ip", rate="0/s")(limited)
    with pytest.raises(TooMany):
        view(get("/"))


# From here on, what only the kit's functions do.


@compat.ratelimit(key="ip", rate="1/d")
def page(request):
    return HttpResponse("fresh")


@compat.ratelimit(key="ip", rate="1/d")
async def async_page(request):
    return HttpResponse("fresh")


def forbidden(request):
    raise PermissionDenied


urlpatterns = [path("page/", page), path("async/", async_page), path("forbidden/", forbidden)]
with_429 = types.ModuleType("with_429")
with_429.urlpatterns, with_429.handler403 = urlpatterns, compat.handler403


def test_django_answers_403(kit, settings):
    settings.ROOT_URLCONF = HERE
    assert [Client().get("/page/").status_code for _ in range(2)] == [200, 403]


def test_handler_answers_429(kit, settings):
    settings.ROOT_URLCONF = with_429
    responses = [Client().get("/page/") for _ in range(3)]
    assert [one.status_code for one in responses] == [200, 429, 429]
    assert 1 <= int(responses[2]["Retry-After"]) <= 86_400
    assert "r=0;" in responses[2]["RateLimit"]
    assert Client().get("/forbidden/").status_code == 403


def test_async_views_are_limited_in_their_loop(kit, settings, monkeypatch):
    settings.ROOT_URLCONF = with_429
    monkeypatch.setattr(compat.Throttle, "hit", None)

    async def several():
        return [(await AsyncClient().get("/async/")).status_code for _ in range(2)]

    assert asyncio.run(several()) == [200, 429]


def test_async_twins_and_coroutine_functions(kit):
    async def rate(group, request):
        return "1/d"

    async def key(group, request):
        return group

    async def several():
        ask = partial(compat.aget_usage, get("/"), group="a", key=key, rate=rate)
        found = [await ask(increment=True), await ask(increment=True), await ask()]
        return [one["count"] for one in found], await compat.ais_ratelimited(get("/"), group="a", key=key, rate=rate)

    assert asyncio.run(several()) == ([1, 2, 2], True)
    for wrong in ({"key": key, "rate": "1/d"}, {"key": "ip", "rate": rate}):
        with pytest.raises(TypeError, match="coroutine"):
            compat.get_usage(get("/"), group="a", **wrong)


@pytest.mark.parametrize("wrong", [{"rate": "5/x", "key": "ip"}, {"rate": "5/m", "key": "users"}, {"rate": 5}])
def test_what_is_wrong_for_sure_fails_where_the_view_is_defined(wrong):
    with pytest.raises((InvalidRate, ConfigurationError)):
        compat.ratelimit(**wrong)


def test_wrong_dotted_path_is_found_by_the_system_check(kit, monkeypatch):
    compat._key.cache_clear()
    monkeypatch.setattr(identity, "_paths", {})
    compat.ratelimit(key="tests.nowhere.key", rate="5/m")
    assert [message.id for message in messages()] == ["redis_kit.E014"]


def test_system_check_names_settings_that_would_be_without_effect(kit, settings, monkeypatch):
    monkeypatch.setattr(identity, "_paths", {})
    settings.RATELIMIT_IP_META_KEY = "HTTP_X_REAL_IP"
    (message,) = messages()
    assert message.id == "redis_kit.W017"
    assert "TRUSTED_PROXIES" in message.msg


@pytest.mark.parametrize("name", UNREAD)
def test_system_check_names_each_setting_that_is_not_read(kit, settings, monkeypatch, name):
    monkeypatch.setattr(identity, "_paths", {})
    setattr(settings, name, "something")
    (message,) = messages()
    assert message.id == "redis_kit.W017"
    assert message.msg.startswith(f"{name} is not read by redis_kit.throttling.compat, ")
    assert message.hint


def test_each_setting_of_the_original_is_read_or_named_by_the_system_check():
    pytest.importorskip("django_ratelimit.core")
    package = files("django_ratelimit")
    sources = [one.read_text() for one in package.iterdir() if one.name.endswith(".py") and one.name != "tests.py"]
    known = {name for source in sources for name in re.findall(r"RATELIMIT_[A-Z0-9_]+", source)}
    assert len(known) >= 8
    ours = inspect.getsource(compat)
    assert {name for name in known if name not in UNREAD and name not in ours} == set()


def test_one_round_trip(kit, commands):
    view = compat.ratelimit(key="ip", rate="5/d")(limited)
    view(get("/"))
    with commands(kit) as sent:
        view(get("/"))
    assert sent == ["EVALSHA"]


def test_dashboard_shows_the_limit_that_was_written(kit):
    compat.ratelimit(group="shown", key="ip", rate="5/m", method="POST")(limited)(post("/"))
    (found,) = [limit for limit in registered.values() if limit.name == "shown POST"]
    assert list(map(str, found.rates)) == ["5/m"]


def test_several_rates_and_windows_without_end(kit):
    ask = partial(compat.get_usage, get("/"), group="a", key="ip", increment=True)
    assert [ask(rate="5/d; 2/h")["should_limit"] for _ in range(3)] == [False, False, True]
    assert 0 <= ask(rate="0/d")["time_left"] <= 86_400


@pytest.mark.parametrize(
    ("policy", "fail_open", "outcome"),
    [
        ("open", None, [False, False, False]),
        ("closed", None, [True, True, True]),
        ("local", None, [False, True, True]),
        ("closed", True, [False, False, False]),
        ("open", False, [True, True, True]),
    ],
)
def test_outage_is_answered_by_the_policy_or_by_the_old_setting(own_kit, settings, policy, fail_open, outcome):
    own_kit.options(THROTTLING={"ON_FAILURE": policy})
    if fail_open is not None:
        settings.RATELIMIT_FAIL_OPEN = fail_open
    own_kit.server.stop()
    view = compat.ratelimit(group=f"{policy} {fail_open}", key="ip", rate="1/d", block=False)(limited)
    assert answers(view, get("/"), get("/"), get("/")) == outcome
    usage = compat.get_usage(get("/"), group="a", key="ip", rate="1/d", increment=True)
    closed = {"count": 0, "limit": 0, "should_limit": True, "time_left": -1}
    assert usage == (None if not outcome[2] else closed) or policy == "local"


@pytest.fixture(params=["kit", "original"])
def api_away(request, own_kit, settings):
    """The kit's functions and the original ones over django-redis, when the server of both is gone."""
    own_kit.server.stop()
    if request.param == "kit":
        return compat
    pytest.importorskip("django_redis")
    options = {"IGNORE_EXCEPTIONS": True}
    cache = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": own_kit.server.url, "OPTIONS": options}
    settings.CACHES = {"default": cache}
    return original()


@pytest.mark.parametrize("fail_open", [False, True])
def test_look_in_an_outage_limits_nobody_but_a_counted_call_may(api_away, settings, fail_open):
    settings.RATELIMIT_FAIL_OPEN = fail_open
    ask = {"group": "away", "key": "ip", "rate": "3/d"}
    for _ in range(3):
        assert api_away.is_ratelimited(get("/"), **ask) is False
        assert api_away.is_ratelimited(get("/"), **ask, increment=True) is not fail_open
    if not fail_open:
        looked = api_away.get_usage(get("/"), **ask)
        assert 0 <= looked.pop("time_left") <= 86_400
        assert looked == {"count": 0, "limit": 3, "should_limit": False}
        counted = {"count": 0, "limit": 0, "should_limit": True, "time_left": -1}
        assert api_away.get_usage(get("/"), **ask, increment=True) == counted


def test_a_look_in_an_outage_is_the_same_in_an_event_loop(own_kit, settings):
    own_kit.server.stop()
    settings.RATELIMIT_FAIL_OPEN = False
    ask = {"group": "away", "key": "ip", "rate": "3/d"}

    async def asked():
        return [await compat.ais_ratelimited(get("/"), **ask, increment=counted) for counted in (False, True)]

    assert asyncio.run(asked()) == [False, True]


def test_counts_end_with_their_window(kit):
    limit = compat._throttle("a", (), compat.parse("2/10s"), None)
    moved = compat.Throttle("moved", limit.rates, strategy=limit.strategy, clock=lambda: now[0])
    now = [1000.0]
    figures = [moved.hit("joe").remaining for _ in range(4)]
    assert figures == [1, 0, -1, -1]
    now[0] = 1009.999
    assert moved.peek("joe").remaining == -1
    now[0] = 1010.0
    assert math.isclose(moved.peek("joe").reset_after, 10)
    assert [moved.hit("joe").remaining for _ in range(2)] == [1, 0]
    now[0] = 1005.0  # the clock went back: nothing is given for it
    assert moved.hit("joe").remaining == -1
