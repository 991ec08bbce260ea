"""Mistakes in a connection's entry: each is named at the check and at first use, with what to write instead."""

import warnings
from inspect import signature
from pathlib import Path

import pytest
from django.test.utils import _TestState
from redis.asyncio import SSLConnection

from redis_kit.core import conf
from redis_kit.core.checks.configuration import check_settings
from redis_kit.core.client import addresses, connection_options
from redis_kit.core.client.addresses import Address, address
from redis_kit.core.client.connection_factory import async_factory, factory
from redis_kit.core.component import components
from redis_kit.core.errors import ConfigurationError
from redis_kit.core.terminal import alias

URL = {"URL": "redis://h"}
DEFAULT = {"CONNECTIONS": {"default": URL}}


def both(settings, kit, using="default"):
    """Return the text of the checks, and that of the error at first use."""
    settings.CACHES = {}
    settings.REDIS_KIT = kit
    checks = " ".join(f"{message.msg} {message.hint or ''}" for message in check_settings())
    with pytest.raises(ConfigurationError) as error:
        address(using)
    return checks, str(error.value)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (URL | {"FOO": 5}, "has no option 'FOO'. Allowed beside URL: DB, USERNAME, PASSWORD,"),
        (URL | {"FOO": 5}, "and for TLS SSL_CA_CERTS, "),
        (URL | {5: 5}, "has no option 5. Allowed beside URL"),
        (URL | {"PASWORD": "x"}, "has no option 'PASWORD'. Did you mean 'PASSWORD'?"),
        (URL | {"SOCKET_TIMEOUT": 5}, "has no option 'SOCKET_TIMEOUT'. Set REDIS_KIT['READ_TIMEOUT']"),
        (URL | {"OPTIONS": {"db": 1}}, "has no option 'OPTIONS'. Write the options beside the server, in capitals"),
        (URL | {"PORT": 6379}, "has no option 'PORT'. Write the address as 'URL': 'redis://host:6379/0'"),
        (URL | {"DB": 99}, "['DB'] names database '99'; allowed: 0 to 15."),
        ({"URL": "redis://h/3", "DB": 5}, "['URL'] and DB name different databases: 3 and 5. Leave one of them out."),
        ({"URL": "redis://h/3?db=6", "db": "3"}, "['URL'] and DB name different databases: 3 and 6."),
        ({"URL": "redis://\ud800:6379/0"}, "['URL'] is 'redis://\\ud800:6379/0'; it must be a server's URL."),
        (URL | {"DB": 1.5}, "['DB'] is a number; it must be a whole number or text."),
        ({"CLUSTER": "redis://h", "DB": 1}, "['DB'] names database '1'; allowed: 0 with Cluster."),
        (URL | {"SOCKET_KEEPALIVE": "yes"}, "['SOCKET_KEEPALIVE'] is text; it must be True or False or None."),
        (
            {"HOST": "h", "PORT": 1},
            "must have exactly one of CACHE, CLUSTER, EMBEDDED, SENTINELS, URL. Write the address",
        ),
        ({"LOCATION": "redis://h"}, "SENTINELS, URL. Write the address as 'URL': 'redis://host:6379/0'"),
        ({"BACKEND": "x", "LOCATION": "redis://h"}, "This is an entry of CACHES. Name that cache here"),
        (URL | {"CACHE": "default"}, "exactly one of CACHE, CLUSTER, EMBEDDED, SENTINELS, URL. It has CACHE and URL."),
        ({}, "For instance {'URL': 'redis://localhost:6379/0'}."),
        ("redis://u:geheim@h", "['default'] is text; it must be a dict with one of CACHE"),
        (["redis://u:geheim@h"], "['default'] is a list; it must be a dict with one of CACHE"),
        (None, "['default'] is None; it must be a dict with one of CACHE"),
        ({"SENTINELS": [("h", 1)], "SERVICE_NAME": "s"}, "no option 'SERVICE_NAME'. The option is 'SERVICE'"),
        (
            {"SENTINELS": ["h:1"], "SERVICE": "s"},
            "must be a list of (host, port), with whole numbers from 1 to 65535 as ports. [('10.0.0.1', 26379)], for",
        ),
        ({"SENTINELS": [("h", 1), ("h", -1)], "SERVICE": "s"}, "['SENTINELS'] must be a list of (host, port), with"),
        ({"SENTINELS": [("h", "56323")], "SERVICE": "s"}, "['SENTINELS'] must be a list of (host, port), with"),
        (
            {"SENTINELS": [("h", 1)], "SERVICE": "s", "SENTINEL_KWARGS": {"foo": 1}},
            "['SENTINEL_KWARGS'] has no option 'foo'. Allowed: username, password, credential_provider, ssl, and for",
        ),
        (
            {"SENTINELS": [("h", 1)], "SERVICE": "s", "SENTINEL_KWARGS": "geheim"},
            "['SENTINEL_KWARGS'] is text; it must",
        ),
        ({"CLUSTER": []}, "['CLUSTER'] is []; it must be a URL."),
        ({"CLUSTER": ["redis://h", "http://h"]}, "['CLUSTER'] is 'http://h'; it must be a server's URL."),
        ({"CLUSTER": ["redis://h", ("h", 1)]}, "['CLUSTER'] is a tuple; it must be a URL."),
        ({"CACHE": "nope"}, "Without a Redis cache, give the server: {'URL': 'redis://...'}."),
    ],
)
def test_wrong_entry_says_what_to_write(settings, entry, text):
    checks, error = both(settings, {"CONNECTIONS": {"default": entry}})
    assert text in checks
    assert text in error
    assert "geheim" not in checks + error


TLS = "is set, and the connection is one without TLS. Begin the URL with rediss://. Beside SENTINELS the option is SSL."
SECURE = {"URL": "rediss://h"}
SENTINELS = {"SENTINELS": [("h", 1)], "SERVICE": "s"}


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (URL | {"SSL_CA_CERTS": __file__}, f"['default']['SSL_CA_CERTS'] {TLS}"),
        (URL | {"SSL_CHECK_HOSTNAME": False}, f"['SSL_CHECK_HOSTNAME'] {TLS}"),
        ({"URL": "redis://h?ssl_cert_reqs=none"}, f"['SSL_CERT_REQS'] {TLS}"),
        ({"URL": "unix:///run/redis", "SSL_CERT_REQS": None}, f"['SSL_CERT_REQS'] {TLS}"),
        ({"CLUSTER": "valkey://h", "SSL_CIPHERS": "x"}, f"['SSL_CIPHERS'] {TLS}"),
        (SENTINELS | {"SSL_CA_CERTS": __file__}, f"['default']['SSL_CA_CERTS'] {TLS}"),
        (
            SENTINELS | {"SENTINEL_KWARGS": {"ssl_keyfile": __file__}},
            "['SSL_KEYFILE'] is set, and the connection is one without TLS. Add 'ssl': True there.",
        ),
        ({"CACHE": "plain"}, f"['SSL_CA_CERTS'] {TLS}"),
        ({"CACHE": "secure"}, "['SSL_CA_CERTS'] is '/nope', which does not exist on this machine."),
        (SECURE | {"SSL_KEYFILE": Path("/nope")}, "['SSL_KEYFILE'] is PosixPath('/nope'), which does not exist"),
        (
            SECURE | {"SSL_CERT_REQS": "nope"},
            "['SSL_CERT_REQS'] is 'nope'; it must be one of required, optional, none.",
        ),
        (SECURE | {"SSL_CERT_REQS": True}, "['SSL_CERT_REQS'] is True; it must be one of required, optional, none."),
        (SECURE | {"SSL_MIN_VERSION": "TLSv1_3"}, "['SSL_MIN_VERSION'] is 'TLSv1_3'; it must be a version of the"),
        ({"URL": "rediss://h?ssl_min_version=TLSv1_3"}, "For instance ssl.TLSVersion.TLSv1_3."),
    ],
)
def test_wrong_option_for_tls_says_what_to_write(settings, entry, text):
    backend, options = "django.core.cache.backends.redis.RedisCache", {"ssl_ca_certs": "/nope"}
    settings.CACHES = {
        "plain": {"BACKEND": backend, "LOCATION": "redis://h", "OPTIONS": options},
        "secure": {"BACKEND": backend, "LOCATION": "rediss://h", "OPTIONS": options},
    }
    settings.REDIS_KIT = {"CONNECTIONS": {"default": entry}}
    (message,) = check_settings()
    assert text in f"{message.msg} {message.hint or ''}"
    with pytest.raises(ConfigurationError) as error:
        address("default")
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({}, "CACHES['default']['LOCATION'] is ''; it must be a URL. For instance 'redis://localhost:6379/0'."),
        ({"LOCATION": None}, "['LOCATION'] is None; it must be a URL."),
        ({"LOCATION": 5}, "['LOCATION'] is a whole number; it must be a URL."),
        ({"LOCATION": []}, "['LOCATION'] is []; it must be a URL."),
        ({"LOCATION": [5]}, "['LOCATION'] is a whole number; it must be a URL."),
        ({"LOCATION": Path("h")}, "['LOCATION'] is a PosixPath; it must be a URL."),
        ({"LOCATION": "h"}, "['LOCATION'] is 'h'; it must be a server's URL. Schemes: redis://"),
        ({"LOCATION": "127.0.0.1:6471"}, "['LOCATION'] is '127.0.0.1:6471'; it must be a server's URL."),
        ({"LOCATION": "redis://h", "OPTIONS": None}, "CACHES['default']['OPTIONS'] is None; it must be a dict."),
        (
            {"LOCATION": "redis://h", "OPTIONS": {"SENTINELS": "127.0.0.1:1"}},
            "CACHES['default']['OPTIONS']['SENTINELS'] must be a list of (host, port), with whole numbers",
        ),
    ],
)
def test_cache_that_its_backend_can_not_use_is_named(settings, entry, text):
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", **entry}}
    settings.REDIS_KIT = {}
    (message,) = check_settings()
    assert message.id == "redis_kit.E003"
    assert text in f"{message.msg} {message.hint}"
    with pytest.raises(ConfigurationError) as error:
        address("default")
    assert text in str(error.value)


def test_cache_that_is_not_a_dict_is_not_redis(settings):
    settings.CACHES = {"default": None}
    settings.REDIS_KIT = {}
    assert [message.id for message in check_settings()] == ["redis_kit.E001"]


@pytest.mark.parametrize("name", sorted(component.settings.name for component in components() if component.settings))
def test_section_without_connections_is_not_taken_for_them(settings, name):
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://h"}}
    settings.REDIS_KIT = {name: {}}
    assert check_settings() == []
    assert address("default").url == "redis://h"


@pytest.mark.parametrize(
    ("kit", "text"),
    [
        (
            {"CONECTIONS": {"default": URL}},
            "no option 'CONECTIONS'. Did you mean 'CONNECTIONS'? Write 'CONNECTIONS': {",
        ),
        ({"CONNECTION": {"default": URL}}, "no option 'CONNECTION'. Did you mean 'CONNECTIONS'?"),
        ({"URL": "redis://h"}, "no option 'URL'. Write REDIS_KIT = {'CONNECTIONS': {'default': {'URL': 'redis://"),
        ({"LOCATION": "redis://h"}, "no option 'LOCATION'. Write REDIS_KIT = {'CONNECTIONS': {'default': {'URL': "),
        (
            {"HOST": "h"},
            "no option 'HOST'. Write REDIS_KIT = {'CONNECTIONS': {'default': {'URL': 'redis://host:6379/0'",
        ),
        (
            {"SENTINELS": [("h", 1)]},
            "no option 'SENTINELS'. Write REDIS_KIT = {'CONNECTIONS': {'default': {'SENTINELS'",
        ),
        ({"CLUSTER": "redis://h"}, "'default': {'CLUSTER': 'redis://...'}}}."),
        ({"CACHE": "default"}, "'default': {'CACHE': 'default'}}}."),
        ({"EMBEDDED": True}, "'default': {'EMBEDDED': True}}}."),
        ({"default": URL}, "no option 'default'. Write REDIS_KIT = {'CONNECTIONS': {'default': {...}}}."),
        ({"PASSWORD": "x"}, "It goes into an entry: REDIS_KIT['CONNECTIONS']['default']['PASSWORD']."),
        ({"CONNECTIONS": "redis://u:geheim@h"}, "['CONNECTIONS'] is text; it must be a dict or None. Write {'default'"),
        ({"CONNECTIONS": ["redis://u:geheim@h"]}, "['CONNECTIONS'] is a list; it must be a dict or None."),
        ({"CONNECTIONS": URL}, "has 'URL' in the place of an alias. Write 'CONNECTIONS': {'default': {'URL': ...}}."),
        ({"CONNECTIONS": {"jobs": URL}}, "has no 'default', the connection of everything that names no other. Add"),
    ],
)
def test_misplaced_option_says_what_to_write(settings, kit, text):
    checks, error = both(settings, kit)
    assert text in checks
    assert text in error
    assert "geheim" not in checks + error
    assert "names the cache" not in checks + error


@pytest.mark.parametrize("alias", [5, "", "a b{}\0", "\ud800"], ids=repr)
def test_alias_that_is_not_printable_text_is_an_error(settings, alias):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": URL, alias: URL}}
    assert [message.msg for message in check_settings()] == [
        f"REDIS_KIT['CONNECTIONS'] has the alias {alias!r}; an alias must be printable text that is not empty."
    ]


def test_missing_connection_names_those_that_exist(settings):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": URL, "jobs": URL}}
    with pytest.raises(ConfigurationError) as error:
        address("nope")
    assert str(error.value) == (
        "There is no connection 'nope'. Connections: 'default', 'jobs'. "
        "Add it as REDIS_KIT['CONNECTIONS']['nope'] = {'URL': 'redis://...'}."
    )


def test_right_entries_pass(settings):
    entries = {
        "same": {"URL": "redis://h/3", "DB": "3"},
        "default": {"URL": "rediss://h", "DB": "1", "PASSWORD": None, "ssl_ca_certs": __file__, "SSL_CERT_REQS": None},
        "s": {"SENTINELS": (("h", 1),), "SERVICE": "s", "SSL": True, "SENTINEL_KWARGS": {"SSL": True}, "DB": 3},
        "c": {"CLUSTER": "redis://h", "DB": 0, "SOCKET_KEEPALIVE": True},
    }
    settings.REDIS_KIT = {"CONNECTIONS": entries}
    assert check_settings() == []
    assert alias("s") == "s"


@pytest.mark.parametrize("test", [True, False, None, {"URL": "redis://t"}, {"EMBEDDED": True}, {"CACHE": "r"}])
@pytest.mark.parametrize("entry", [URL, {"CACHE": "r"}, {"CLUSTER": "redis://h"}])
def test_every_entry_may_have_one_for_tests(settings, entry, test):
    settings.CACHES = {"r": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://c"}}
    settings.REDIS_KIT = {"CONNECTIONS": {"default": entry | {"TEST": test}}}
    assert check_settings() == []


@pytest.mark.parametrize(
    ("test", "text"),
    [
        ("redis://u:geheim@h", "['TEST'] is text; it must be True, False or a dict. For instance {'URL': "),
        ({"URI": "redis://h"}, "['TEST'] must have exactly one of CACHE, CLUSTER, EMBEDDED, SENTINELS, URL. Did you"),
        (URL | {"FOO": 1}, "['default']['TEST'] has no option 'FOO'. Allowed beside URL: DB, "),
        ({"URL": "http://h"}, "['default']['TEST']['URL'] is 'http://h'; it must be a server's URL."),
    ],
)
def test_wrong_entry_for_tests_says_what_to_write(settings, test, text):
    checks, error = both(settings, {"CONNECTIONS": {"default": URL | {"TEST": test}}})
    assert text in checks
    assert text in error
    assert "geheim" not in checks + error


def test_entry_for_tests_is_used_in_tests_only(settings, monkeypatch):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": URL | {"TEST": {"URL": "redis://t"}}}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert address("default").url == "redis://t"
    monkeypatch.delattr(_TestState, "saved_data")
    assert address("default").url == "redis://h"


def test_connection_that_is_not_for_tests_is_reported_once(settings, monkeypatch):
    monkeypatch.setattr(addresses, "_warned", set())
    settings.REDIS_KIT = DEFAULT
    with pytest.warns(RuntimeWarning, match=r"\['default'\]\['TEST'\] = True") as caught:
        assert {address("default").url for _ in range(2)} == {"redis://h"}
    assert len(caught) == 1
    settings.REDIS_KIT = {"CONNECTIONS": {"default": URL | {"TEST": True}, "jobs": URL}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        address("default")
        monkeypatch.delattr(_TestState, "saved_data")
        address("jobs")


@pytest.mark.parametrize(
    ("entry", "in_tests", "outside"),
    [
        (URL, False, False),
        (URL | {"TEST": True}, True, True),
        (URL | {"TEST": False}, False, False),
        (URL | {"TEST": {"URL": "redis://t"}}, True, False),
        ({"EMBEDDED": True}, True, False),
    ],
)
def test_only_a_connection_that_is_marked_is_for_tests(settings, monkeypatch, entry, in_tests, outside):
    monkeypatch.setenv("REDIS_KIT_EMBEDDED_URL", "redis://e")
    settings.REDIS_KIT = {"CONNECTIONS": {"default": entry}}
    assert _is_for_tests() is in_tests
    monkeypatch.delattr(_TestState, "saved_data")
    assert _is_for_tests() is outside


def _is_for_tests():
    try:
        addresses.require_tests("default")
    except ConfigurationError:
        return False
    return True


def test_every_option_has_a_sentence():
    groups = (
        connection_options.SOURCES,
        connection_options.CLIENT,
        connection_options.TLS,
        connection_options.SENTINEL,
    )
    for option in (option for group in groups for option in group):
        assert option.text.endswith("."), option.name
        assert conf.describe(option.kind)


@pytest.mark.parametrize("name", connection_options.names(connection_options.CLIENT, connection_options.TLS))
def test_each_option_is_one_of_both_kinds_of_connections(name):
    is_secure = name.startswith("ssl")
    if is_secure and name not in signature(SSLConnection).parameters:
        pytest.skip("this redis-py is older than the option, as its description says")
    entry = Address(url=f"{'rediss' if is_secure else 'redis'}://h", options={name: None})
    for make_factory in (factory, async_factory):
        make_factory(entry, {"socket_timeout": 1.0, "socket_connect_timeout": 1.0}).make()
