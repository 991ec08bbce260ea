"""Whose calls count together."""

import asyncio

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import AsyncRequestFactory, RequestFactory
from django.utils.functional import SimpleLazyObject

from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.throttling.identities import Key
from tests.app.models import User


def request(user=None, method="get", **kwargs):
    found = getattr(RequestFactory(), method)("/page/", **kwargs)
    if user is not None:
        found.user = user
    return found


def both(spec, asked):
    """Return what the key finds, in sync and in async code."""
    found = Key(spec).of(asked)
    assert asyncio.run(Key(spec).aof(asked)) == found
    return found


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
        ("tests.throttling.test_identities.path_of", request(), "/page/"),
    ],
)
def test_identity_is_found(kit, spec, asked, identity):
    assert both(spec, asked) == identity


def path_of(asked):
    return asked.path


def test_address_and_user_of_the_same_text_are_two(kit):
    assert Key("user_or_ip").of(request(User(pk=1))) != Key("user_or_ip").of(request(REMOTE_ADDR="0.0.0.1"))


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
def test_headers_that_a_client_can_send_change_nothing_without_a_trusted_proxy(kit, headers):
    assert both("ip", request(REMOTE_ADDR="10.9.9.9", headers=headers)) == "ip:10.9.9.9"


def test_forwarded_header_counts_behind_a_trusted_proxy_from_the_right(kit):
    kit.options(TRUSTED_PROXIES=["10.0.0.0/8"])
    spoofed = request(REMOTE_ADDR="10.9.9.9", headers={"X-Forwarded-For": "6.6.6.6, 1.2.3.4, 10.1.1.1"})
    assert both("ip", spoofed) == "ip:1.2.3.4"


def test_request_over_a_unix_socket_without_a_trusted_proxy_is_a_wrong_configuration(kit):
    with pytest.raises(ConfigurationError, match="TRUSTED_PROXIES"):
        Key("ip").of(request(REMOTE_ADDR=""))


def test_user_without_the_middleware_is_a_wrong_configuration(kit):
    with pytest.raises(ConfigurationError, match="AuthenticationMiddleware"):
        Key("user").of(request())


@pytest.mark.parametrize("spec", ["", "IP", "users", "header:", "cookie:x", "header", None, 5, b"ip", ["ip"], "a.b:c"])
def test_unknown_key_is_refused_at_once(spec):
    with pytest.raises(InvalidValue, match="user_or_ip"):
        Key(spec)


async def slow_path(asked):
    await asyncio.sleep(0)
    return asked.path


def test_coroutine_function_is_a_key_for_async_views_only(kit):
    assert asyncio.run(Key(slow_path).aof(request())) == "/page/"
    with pytest.raises(TypeError, match="coroutine"):
        Key(slow_path).of(request())


def test_lazy_user_is_read_by_its_async_way_in_async_code(kit):
    asked = AsyncRequestFactory().get("/")

    def blocking():
        raise AssertionError("read by the sync way")

    async def auser():
        return JOE

    asked.user, asked.auser = SimpleLazyObject(blocking), auser
    assert asyncio.run(Key("user").aof(asked)) == "user:7"
    asked.user = User(pk=8)
    assert asyncio.run(Key("user").aof(asked)) == "user:8"
