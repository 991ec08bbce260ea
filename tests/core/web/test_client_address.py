"""The address of the client: forwarded headers count only behind trusted proxies, read from the right."""

import pytest
from django.test import RequestFactory

from redis_kit.core.errors import ConfigurationError
from redis_kit.core.web.client_address import client_address

HOPS = ", ".join(f"198.51.100.{number}" for number in range(50))


def address(settings, trusted=(), remote="10.0.0.1", **headers):
    settings.REDIS_KIT = {"TRUSTED_PROXIES": trusted}
    return client_address(RequestFactory().get("/", REMOTE_ADDR=remote, headers=headers))


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP"])
def test_no_header_is_read_without_trusted_proxies(settings, header):
    assert address(settings, **{header: "1.2.3.4"}) == "10.0.0.1"


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP"])
def test_header_counts_where_it_is_named_and_a_proxy_is_trusted(settings, header):
    forged = {"X-Forwarded-For": "6.6.6.6", "X-Real-IP": "6.6.6.6", "CF-Connecting-IP": "6.6.6.6"}
    forged |= {"True-Client-IP": "6.6.6.6", "Forwarded": "for=6.6.6.6"}
    found = RequestFactory().get("/", REMOTE_ADDR="10.0.0.1", headers=forged | {header: "1.2.3.4"})
    settings.REDIS_KIT = {"FORWARDED_HEADER": header}
    assert client_address(found) == "10.0.0.1"
    for trusted in (1, ["10.0.0.0/8"]):
        settings.REDIS_KIT = {"FORWARDED_HEADER": header, "TRUSTED_PROXIES": trusted}
        assert client_address(found) == "1.2.3.4"


@pytest.mark.parametrize(
    ("header", "client"),
    [
        ("for=1.2.3.4", "1.2.3.4"),
        ('for=6.6.6.6;proto=http, For="1.2.3.4:555";by=10.0.0.1', "1.2.3.4"),
        ('proto=https; for="[2001:db8:1:2:3::4]:4711"', "2001:db8:1:2::/64"),
        ("for=1.2.3.4, for=10.0.0.9", "1.2.3.4"),
        ("for=_hidden", "10.0.0.1"),
        ("for=unknown", "10.0.0.1"),
        ("proto=https", "10.0.0.1"),
        ("xfor=1.2.3.4", "10.0.0.1"),
        ('by="a, for=6.6.6.6", for=1.2.3.4', "1.2.3.4"),
        ("1.2.3.4", "10.0.0.1"),
        ("for=" * 16_384, "10.0.0.1"),
        ('host="x;for=6.6.6.6";for=1.2.3.4', "1.2.3.4"),
        ('for=1.2.3.4;host="a,for=7.7.7.7"', "1.2.3.4"),
        ('for=1.2.3.4;host="x;for=6.6.6.6"', "1.2.3.4"),
        (r'for=1.2.3.4;host="x\",for=6.6.6.6;a=\"b"', "1.2.3.4"),
        (r'host="x\\";for=1.2.3.4', "1.2.3.4"),
        ('for=6.6.6.6;host=", for=1.2.3.4;proto="https"', "1.2.3.4"),
        ('for=1.2.3.4;host="x";for=6.6.6.6', "10.0.0.1"),
        ("for=1.2.3.4 ; proto=http", "1.2.3.4"),
        (", " * 40 + "for=1.2.3.4", "1.2.3.4"),
        ('"\\' * 32_768, "10.0.0.1"),
        ('",' * 32_768, "10.0.0.1"),
    ],
)
def test_standard_header_is_read_in_its_own_grammar(settings, header, client):
    settings.REDIS_KIT = {"FORWARDED_HEADER": "Forwarded", "TRUSTED_PROXIES": ["10.0.0.0/8"]}
    assert client_address(RequestFactory().get("/", REMOTE_ADDR="10.0.0.1", headers={"Forwarded": header})) == client


@pytest.mark.parametrize("header", ['for=1.2.3.4;host="a,for=7.7.7.7"', 'host="x;for=6.6.6.6";for=1.2.3.4'])
def test_number_of_hops_counts_no_comma_inside_quotes(settings, header):
    settings.REDIS_KIT = {"FORWARDED_HEADER": "Forwarded", "TRUSTED_PROXIES": 1}
    assert client_address(RequestFactory().get("/", headers={"Forwarded": header})) == "1.2.3.4"


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
        ("[::1]:80", "::/64"),
        ("[::ffff:1.2.3.4]:80", "1.2.3.4"),
        ("1.2.3.4, 10.0.0.300", "10.0.0.1"),
        ("1.2.3.4, ::ffff:10.0.0.3", "1.2.3.4"),
        ("1.2.3.4," + ",".join(["10.0.0.9"] * 31), "1.2.3.4"),
        ("1.2.3.4," + ",".join(["10.0.0.9"] * 32), "10.0.0.9"),
        ("1.2.3.4, " * 8000, "10.0.0.1"),
        ("1.2.3.4, " * 8000 + "5.6.7.8", "5.6.7.8"),
        ("\u0661.2.3.4", "10.0.0.1"),
        ("1.2.3.04", "10.0.0.1"),
        ("0x1020304", "10.0.0.1"),
        ("16909060", "10.0.0.1"),
        ("1.2.3.4\x00", "10.0.0.1"),
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
        (1, "unknown", "10.0.0.1"),
        (1, "_hidden", "10.0.0.1"),
        (1, "::ffff:1.2.3.4", "1.2.3.4"),
        (1, "[::1]:80", "::/64"),
        (1, "1.2.3.4:555", "1.2.3.4"),
        (1, "fe80::1%eth0", "fe80::/64"),
        (1, HOPS, "198.51.100.49"),
        (32, HOPS, "198.51.100.18"),
        (1, "x" * 65536, "10.0.0.1"),
        (3, "x" * 65536 + ", 1.2.3.4, 10.0.0.9, 10.0.0.8", "1.2.3.4"),
    ],
)
def test_number_of_hops_chooses_the_address(settings, hops, header, client):
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


@pytest.mark.parametrize("remote", ["fe80::1%eth0", "2001:db8:1:2:3::4", "::ffff:10.1.2.3", "10.1.2.3:4711"])
def test_address_of_the_connection_is_grouped_like_any_other(settings, remote):
    expected = {"f": "fe80::/64", "2": "2001:db8:1:2::/64", ":": "10.1.2.3", "1": "10.1.2.3"}[remote[0]]
    assert address(settings, remote=remote) == expected


def test_addresses_of_one_network_are_one_client(settings):
    first, second = (address(settings, remote=f"2001:db8:1:2::{last}") for last in ("1", "ffff"))
    assert first == second != address(settings, remote="2001:db8:1:3::1")


@pytest.mark.parametrize("meta", [{}, {"REMOTE_ADDR": ""}, {"REMOTE_ADDR": None}])
def test_connection_without_an_address_is_an_error(settings, meta):
    settings.REDIS_KIT = {}
    found = RequestFactory().get("/")
    del found.META["REMOTE_ADDR"]
    found.META |= meta
    with pytest.raises(ConfigurationError, match="TRUSTED_PROXIES"):
        client_address(found)


def test_unix_socket_behind_a_proxy_that_sends_no_header_is_an_error_too(settings):
    with pytest.raises(ConfigurationError, match="TRUSTED_PROXIES"):
        address(settings, 1, remote="")
