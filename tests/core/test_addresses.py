"""Where a connection leads: all the ways to say it come to the same."""

import pytest

from redis_kit.core.addresses import address, masked
from redis_kit.core.errors import ConfigurationError


def found(settings, connection, **caches):
    settings.CACHES = {"default": caches} if caches else {}
    settings.REDIS_KIT = {"CONNECTIONS": {"default": connection}}
    return address("default")


def test_url_and_its_valkey_spelling(settings):
    assert found(settings, {"URL": "redis://h:1/2"}).url == "redis://h:1/2"
    assert found(settings, {"URL": "valkeys://h:1/2"}).url == "rediss://h:1/2"


def test_options_beside_the_url(settings):
    assert found(settings, {"URL": "redis://h", "PASSWORD": "x"}).options == {"password": "x"}


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        ("django_redis.cache.RedisCache", {"PASSWORD": "x", "CONNECTION_POOL_KWARGS": {"decode_responses": True}}),
        ("django.core.cache.backends.redis.RedisCache", {"password": "x"}),
    ],
)
def test_address_and_credentials_of_a_cache(settings, backend, options):
    got = found(settings, {"CACHE": "default"}, BACKEND=backend, LOCATION="redis://h:1/2", OPTIONS=options)
    assert got.url == "redis://h:1/2"
    assert got.options["password"] == "x"


def test_first_of_several_locations_is_the_primary(settings):
    backend = "django.core.cache.backends.redis.RedisCache"
    got = found(settings, {"CACHE": "default"}, BACKEND=backend, LOCATION=["redis://a:1", "redis://b:1"])
    assert got.url == "redis://a:1"


def test_sentinels_of_a_cache(settings):
    options = {"SENTINELS": [("h", 26379)], "CLIENT_CLASS": "django_redis.client.SentinelClient"}
    backend = "django_redis.cache.RedisCache"
    got = found(settings, {"CACHE": "default"}, BACKEND=backend, LOCATION="redis://mymaster/3", OPTIONS=options)
    assert got.sentinels == (("h", 26379),)
    assert got.service == "mymaster"
    assert got.options["db"] == 3


def test_unknown_alias_names_the_known_ones(settings):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": {"URL": "redis://h"}}}
    with pytest.raises(ConfigurationError, match="Did you mean 'default'"):
        address("defalt")


def test_decoding_caches_work(kit, settings):
    settings.CACHES = {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": kit.url,
            "OPTIONS": {"CONNECTION_POOL_KWARGS": {"decode_responses": True}},
        }
    }
    kit.connect({"CACHE": "default"})
    from redis_kit.core import connections

    assert connections.client().call("ECHO", b"\xff") == b"\xff"


@pytest.mark.parametrize("url", ["redis://u:geheim@h/1", "redis://:geheim@h", "redis://h?password=geheim&db=1"])
def test_masked(url):
    assert "geheim" not in masked(url)
    assert "h" in masked(url)
