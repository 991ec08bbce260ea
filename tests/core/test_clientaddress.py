"""Who the client is: forwarded headers count only behind trusted proxies, read from the right."""

import pytest
from django.test import RequestFactory

from redis_kit.core.clientaddress import client_address
from redis_kit.core.errors import ConfigurationError

HOPS = ", ".join(f"198.51.100.{number}" for number in range(50))


def address(settings, trusted=(), remote="10.0.0.1", **headers):
    settings.REDIS_KIT = {"TRUSTED_PROXIES": trusted}
    return client_address(RequestFactory().get("/", REMOTE_ADDR=remote, headers=headers))


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP"])
def test_no_header_is_read_without_trusted_proxies(settings, header):
    assert address(settings, **{header: "1.2.3.4"}) == "10.0.0.1"


@pytest.mark.parametrize(
    ("header", "client"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("6.6.6.6, 1.2.3.4", "1.2.3.4"),
        ("6.6.6.6, 1.2.3.4, 10.0.0.9", "1.2.3.4"),
        ("1.2.3.4:555", "1.2.3.4"),
        ("[2001:db8:1:2:3::4]:80", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "10.0.0.1"),
        ("_hidden", "10.0.0.1"),
        ("1.2.3.4, garbage", "10.0.0.1"),
        ("1.2.3.4, garbage, 10.0.0.3", "10.0.0.3"),
        (HOPS, "198.51.100.49"),
        ("x" * 65536, "10.0.0.1"),
        ("", "10.0.0.1"),
        (",,,", "10.0.0.1"),
    ],
)
def test_networks_are_walked_from_the_right(settings, header, client):
    assert address(settings, ["10.0.0.0/8"], **{"X-Forwarded-For": header}) == client


@pytest.mark.parametrize(
    ("hops", "header", "client"),
    [
        (1, "6.6.6.6, 1.2.3.4", "1.2.3.4"),
        (2, "6.6.6.6, 1.2.3.4, 10.0.0.9", "1.2.3.4"),
        (2, "1.2.3.4", "10.0.0.1"),
        (1, "garbage", "10.0.0.1"),
        (1, "", "10.0.0.1"),
    ],
)
def test_number_of_hops(settings, hops, header, client):
    assert address(settings, hops, **{"X-Forwarded-For": header}) == client


def test_header_of_an_untrusted_peer_is_not_read(settings):
    assert address(settings, ["10.0.0.0/8"], remote="203.0.113.5", **{"X-Forwarded-For": "1.2.3.4"}) == "203.0.113.5"


def test_no_address_at_all_is_an_error_that_names_the_setting(settings):
    with pytest.raises(ConfigurationError, match="TRUSTED_PROXIES"):
        address(settings, remote="")


def test_unix_socket_behind_one_proxy(settings):
    assert address(settings, 1, remote="", **{"X-Forwarded-For": "1.2.3.4"}) == "1.2.3.4"


@pytest.mark.parametrize("remote", ["junk", "1.2.3.4, 5.6.7.8", "x" * 65536, "\x00"])
def test_forged_address_of_a_server_that_believes_headers_is_one_identity(settings, remote):
    assert address(settings, remote=remote) == "invalid"
