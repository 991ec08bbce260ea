"""Identities: which calls count together."""

import asyncio

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import AsyncRequestFactory, RequestFactory
from django.utils.functional import SimpleLazyObject

from redis_kit.core import flow
from redis_kit.core.errors import ConfigurationError, InvalidName, InvalidValue
from redis_kit.throttling import Throttle
from redis_kit.throttling import identity as identities
from redis_kit.throttling.checks import messages
from redis_kit.throttling.identity import IdentityKey, masked, without_secrets
from tests.app.models import User


def request(user=None, method="get", **kwargs):
    asked = getattr(RequestFactory(), method)("/page/", **kwargs)
    if user is not None:
        asked.user = user
    return asked


def found(spec, asked):
    return flow.run(IdentityKey(spec).find(asked), None)


def afound(spec, asked):
    return flow.arun(IdentityKey(spec).find(asked), None)


def both(spec, asked):
    """Return what the key finds, in sync and in async code."""
    identity = found(spec, asked)
    assert asyncio.run(afound(spec, asked)) == identity
    return identity


JOE = User(pk=7, username="joe")


@pytest.mark.parametrize(
    ("spec", "asked", "identity"),
    [
        ("ip", request(REMOTE_ADDR="10.1.2.3"), "ip:10.1.2.3"),
        ("ip", request(REMOTE_ADDR="2001:db8:1:2:3:4:5:6"), "ip:2001:db8:1:2::/64"),
        ("user", request(JOE), "user:7"),
        ("user", request(AnonymousUser()), "anonymous"),
        ("user_or_ip", request(JOE), "user:7"),
        ("user_or_ip", request(AnonymousUser(), REMOTE_ADDR="10.1.2.3"), "ip:10.1.2.3"),
        ("user_or_ip", request(REMOTE_ADDR="10.1.2.3"), "ip:10.1.2.3"),
        ("header:X-Api-Key", request(headers={"X-Api-Key": "abc"}), "header:abc"),
        ("header:x-api-key", request(), "header:"),
        ("get:q", request(query_params={"q": "abc"}), "get:abc"),
        ("get:q", request(), "get:"),
        ("post:email", request(method="post", data={"email": "a@b"}), "post:a@b"),
        ("post:email", request(), "post:"),
        (lambda asked: asked.path, request(), "/page/"),
        (["ip"], request(REMOTE_ADDR="10.1.2.3"), "ip:10.1.2.3"),
        (["ip", "user"], request(JOE, REMOTE_ADDR="10.1.2.3"), "ip:10.1.2.3 user:7"),
        (("user", lambda asked: asked.path), request(JOE), "user:7 /page/"),
        (["get:q", lambda asked: 5], request(query_params={"q": "a b%20"}), "get:a%20b%2520 5"),
        ("tests.throttling.test_identity.path_of", request(), "/page/"),
    ],
)
def test_identity_is_found(kit, spec, asked, identity):
    assert both(spec, asked) == identity


def path_of(asked):
    return asked.path


def test_address_and_user_of_the_same_text_are_two(kit):
    assert found("user_or_ip", request(User(pk=1))) != found("user_or_ip", request(REMOTE_ADDR="0.0.0.1"))


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "1.2.3.4"},
        {"X-Forwarded-For": ", ".join(f"1.2.3.{number}" for number in range(50))},
        {"X-Forwarded-For": "x" * 65_536},
        {"X-Forwarded-For": "unknown, _hidden, ::ffff:1.2.3.4, [::1]:80, 1.2.3.4:555, fe80::1%eth0"},
        {
            "Forwarded": "for=1.2.3.4",
            "X-Real-IP": "1.2.3.4",
            "CF-Connecting-IP": "1.2.3.4",
            "True-Client-IP": "1.2.3.4",
        },
    ],
)
def test_headers_of_a_client_change_nothing_without_a_trusted_proxy(kit, headers):
    assert both("ip", request(REMOTE_ADDR="10.9.9.9", headers=headers)) == "ip:10.9.9.9"


def test_forwarded_header_counts_behind_a_trusted_proxy_from_the_right(kit):
    kit.options(TRUSTED_PROXIES=["10.0.0.0/8"])
    spoofed = request(REMOTE_ADDR="10.9.9.9", headers={"X-Forwarded-For": "6.6.6.6, 1.2.3.4, 10.1.1.1"})
    assert both("ip", spoofed) == "ip:1.2.3.4"


def test_unix_socket_without_a_trusted_proxy_is_a_wrong_configuration(kit):
    with pytest.raises(ConfigurationError, match="TRUSTED_PROXIES"):
        found("ip", request(REMOTE_ADDR=""))


def test_user_without_the_middleware_is_a_wrong_configuration(kit):
    with pytest.raises(ConfigurationError, match="AuthenticationMiddleware"):
        found("user", request())


@pytest.mark.parametrize(
    "spec",
    [
        *("", "IP", "users", "cookie:x", "header", None, 5, b"ip", "a.b:c", [], ["IP"], ["ip", None], [["ip"]]),
        *("header:", "header: X-Key", "header:X Key", "header:X-Key\n", "get: x", "post:x ", "get: "),
    ],
)
def test_unknown_key_is_refused_at_once(spec):
    with pytest.raises(InvalidValue, match="user_or_ip"):
        IdentityKey(spec)


async def slow_path(asked):
    await asyncio.sleep(0)
    return asked.path


def test_coroutine_function_is_a_key_for_async_views_only(kit):
    assert asyncio.run(afound(slow_path, request())) == "/page/"
    with pytest.raises(TypeError, match="coroutine"):
        found(slow_path, request())


def test_lazy_user_is_read_by_its_async_way_in_async_code(kit):
    asked = AsyncRequestFactory().get("/")

    def blocking():
        raise AssertionError("read by the sync way")

    async def auser():
        return JOE

    asked.user, asked.auser = SimpleLazyObject(blocking), auser
    assert asyncio.run(afound("user", asked)) == "user:7"
    asked.user = User(pk=8)
    assert asyncio.run(afound("user", asked)) == "user:8"


def test_parts_of_a_combined_identity_can_not_be_shifted_by_a_client(kit):
    spec = ["get:a", "get:b"]
    first = found(spec, request(query_params={"a": "1 get:2", "b": "3"}))
    second = found(spec, request(query_params={"a": "1", "b": "2 get:3"}))
    third = found(spec, request(query_params={"a": "1%20get:2", "b": "3"}))
    assert len({first, second, third}) == 3


@pytest.mark.parametrize("part", [None, "", True, {"a": 1}, b"x", 2.5])
def test_part_that_is_no_identity_is_refused(kit, part):
    with pytest.raises(InvalidName):
        found(["ip", lambda asked: part], request())


def test_coroutine_functions_may_be_parts_in_async_views_only(kit):
    spec = ["ip", slow_path]
    assert asyncio.run(afound(spec, request(REMOTE_ADDR="10.1.2.3"))) == "ip:10.1.2.3 /page/"
    with pytest.raises(TypeError, match="coroutine"):
        found(spec, request())


@pytest.mark.parametrize("identity", [None, "", {"a": 1}, True, 2.5, b"joe", ["joe"]])
def test_identity_that_is_none_is_refused(kit, identity):
    with pytest.raises(InvalidName):
        Throttle("api", "5/m").hit(identity)


@pytest.mark.parametrize("agent", ["x" * 10_240, "\U0001f600" * 4000, "\ud800" * 4000, "\ud800", "\x00", "a\nb"])
def test_any_text_is_an_identity_and_takes_bounded_room(kit, agent):
    limit = Throttle("api", "1/m")
    answers = [limit.hit(agent).allowed for _ in range(2)]
    assert answers == [True, False]
    assert len({len(key) for key in kit.keys() if "}:" in key and key.endswith(limit._kind)}) == 1
    assert all(len(entry) <= 160 for key in kit.keys() if key.endswith("offenders") for entry in offenders(kit, key))


def offenders(kit, key):
    return kit.client.zrange(key, 0, -1)


HERE = "tests.throttling.test_identity"
BROKEN = [f"{HERE}.nobody", "tests.throttling.nowhere.key", "tests.throttling.test_gcra"]


@pytest.mark.parametrize("path", BROKEN)
def test_wrong_dotted_path_fails_the_system_check_and_the_first_request(kit, path, monkeypatch):
    monkeypatch.setattr(identities, "_paths", {})
    with pytest.raises(ConfigurationError, match=path):
        found(path, request())
    (message,) = messages()
    assert message.id == "redis_kit.E014"
    assert path in message.msg


def test_right_dotted_path_passes_the_system_check(kit, monkeypatch):
    monkeypatch.setattr(identities, "_paths", {})
    IdentityKey("tests.throttling.test_identity.path_of")
    assert list(messages()) == []


def test_system_check_covers_throttles_of_routes_not_yet_requested(kit, monkeypatch, settings, tmp_path):
    monkeypatch.setattr(identities, "_paths", {})
    monkeypatch.syspath_prepend(tmp_path)
    name = f"routes_{kit.prefix}"
    (tmp_path / f"{name}.py").write_text(
        "from redis_kit.throttling import throttle\n\n"
        "urlpatterns = []\n\n\n"
        "@throttle('5/m', key='tests.nowhere.key')\ndef view(request): ...\n"
    )
    settings.ROOT_URLCONF = name
    (message,) = messages()
    assert message.id == "redis_kit.E014"
    assert "The key 'tests.nowhere.key' can't be imported" in message.msg


def test_routes_that_can_not_be_imported_are_left_to_djangos_own_check(kit, monkeypatch, settings):
    monkeypatch.setattr(identities, "_paths", {})
    settings.ROOT_URLCONF = "tests.nowhere"
    assert list(messages()) == []


@pytest.mark.parametrize(("spec", "near"), [("usr", "user"), ("IP", "ip"), ("users_or_ip", "user_or_ip")])
def test_misspelt_key_is_refused_with_the_nearest(spec, near):
    with pytest.raises(InvalidValue, match=f"is not known. Did you mean '{near}'"):
        IdentityKey(spec)


@pytest.mark.parametrize(
    ("identity", "shown"),
    [
        ("ip:203.0.113.7", "ip:203.0.113.***"),
        ("203.0.113.7", "203.0.113.***"),
        ("ip:2001:db8:1:2::/64", "ip:2001:db8:***"),
        ("2001:db8::1", "2001:db8:***"),
        ("user:4711", "user:471***"),
        ("user:42", "user:***"),
        ("alice", "ali***"),
        ("bob", "***"),
        ("user:alice@example.com", "user:ali***"),
        ("header:X-Token:abc", "header:X-T***"),
        ("", "***"),
    ],
)
def test_telling_part_is_hidden_and_stays_so_when_it_is_masked_again(identity, shown):
    assert masked(identity) == shown
    assert masked(shown) == shown


@pytest.mark.parametrize(
    ("identity", "stored"),
    [
        ("header:sk_live_4711", "header:sk_***"),
        ("header:Bearer sk_live_4711", "header:Bea***"),
        ("get:4711", "get:471***"),
        ("ip:203.0.113.7 post:joe@example.com", "ip:203.0.113.7 post:joe***"),
        ("ip:203.0.113.7 header: post:x", "ip:203.0.113.7 header: po***"),
        ("header:", "header:"),
        ("ip:203.0.113.7", "ip:203.0.113.7"),
        ("forget:me", "forget:me"),
        ("header:key\nsk_live_4711", "header:key***"),
    ],
)
def test_values_that_clients_send_are_masked_to_the_end(identity, stored):
    assert without_secrets(identity) == stored
