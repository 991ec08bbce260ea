"""The address of a connection: all ways to state it are equal."""

import pytest

from redis_kit.core.client.addresses import address, masked
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
    options = {"SENTINELS": [("h", "26379")], "CLIENT_CLASS": "django_redis.client.SentinelClient"}
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
def test_password_of_a_url_is_masked(url):
    assert "geheim" not in masked(url)
    assert "h" in masked(url)


def test_tls_and_credentials_of_djangos_own_cache(settings):
    class Provider:
        """Where a password comes from."""

    provider = Provider()
    options = {
        "ssl_ca_certs": __file__,
        "ssl_cert_reqs": "optional",
        "credential_provider": provider,
        "client_name": "shop",
        "parser_class": "redis.connection.DefaultParser",
        "socket_timeout": 99,
    }
    backend = "django.core.cache.backends.redis.RedisCache"
    got = found(settings, {"CACHE": "default"}, BACKEND=backend, LOCATION="rediss://h:1/2", OPTIONS=options)
    assert got.options == {
        "ssl_ca_certs": __file__,
        "ssl_cert_reqs": "optional",
        "credential_provider": provider,
        "client_name": "shop",
    }


@pytest.mark.parametrize("source", ["URL", "CLUSTER"])
def test_url_keeps_what_concerns_the_connection_only(settings, source):
    url = "rediss://h:1/0?protocol=3&decode_responses=True&ssl_cert_reqs=none&socket_timeout=99&max_connections=1&client_name=a%20b"
    assert found(settings, {source: url}).url == "rediss://h:1/0?ssl_cert_reqs=none&client_name=a%20b"
    assert found(settings, {source: "redis://h:1/0?protocol=3"}).url == "redis://h:1/0"


def test_address_of_a_cache_keeps_its_own_options_only(settings):
    got = found(
        settings,
        {"CACHE": "default"},
        BACKEND="django_redis.cache.RedisCache",
        LOCATION="redis://h:1/2?protocol=3&password=x",
    )
    assert got.url == "redis://h:1/2?password=x"


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        ({"URL": "redis://h?ssl_ca_cert=/ca.pem"}, "no option 'ssl_ca_cert'. Did you mean 'ssl_ca_certs'"),
        ({"URL": "redis://h", "USERNAM": "x"}, "no option 'USERNAM'. Did you mean 'USERNAME'"),
        ({"URL": "redis://h", "SSL": True}, "no option 'SSL'. Begin the URL with rediss://"),
        ({"CACHE": "default", "PASSWORD": "x"}, "no option 'PASSWORD'. No option is allowed beside CACHE"),
    ],
)
def test_misspelt_option_is_named(settings, connection, said):
    with pytest.raises(ConfigurationError, match=said):
        found(settings, connection, BACKEND="django_redis.cache.RedisCache", LOCATION="redis://h")


@pytest.mark.parametrize("query", ["protocol=3", "decode_responses=True", "protocol=3&decode_responses=True"])
def test_options_for_other_clients_in_a_url_change_no_reply(kit, tcp_valkey, twin, query):
    from redis_kit.locks import Lock
    from redis_kit.pageviews import PageViews
    from redis_kit.queues import Queue

    kit.connect({"URL": f"{tcp_valkey.url}?{query}"})
    queue, lock = Queue("a"), Lock("a")
    twin(PageViews("page").add, "me")
    assert twin(PageViews.site().top) == [("page", 1)]
    twin(queue.put, {"a": 1})
    (job,) = twin(queue.claim)
    assert job.payload == {"a": 1}
    assert twin(lock.acquire)
    assert twin(lock.locked)
    twin(lock.release)


ITSELF = "It is an option of REDIS_KIT itself, not of a connection"


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        *(({"URL": "redis://h", name: 5}, ITSELF) for name in ("MAX_CONNECTIONS", "POOL_TIMEOUT", "READ_TIMEOUT")),
        ({"URL": "redis://h", "max_connections": 5}, ITSELF),
        ({"CLUSTER": "redis://h", "CONNECT_TIMEOUT": 1}, ITSELF),
        ({"URL": "redis://h", "SOCKET_TIMEOUT": 1}, r"Set REDIS_KIT\['READ_TIMEOUT'\]"),
        ({"URL": "redis://h", "HEALTH_CHECK_INTERVAL": 5}, "Leave it out"),
        ({"URL": "redis://h", "SOCKET_CONNECT_TIMEOUT": 1}, r"Set REDIS_KIT\['CONNECT_TIMEOUT'\]"),
        ({"SENTINELS": [("h", 1)], "SERVICE": "s", "SENTINEL_PASSWORD": "x"}, "'SENTINEL_KWARGS': {'password': ...}"),
        ({"SENTINELS": [("h", 1)], "SERVICE": "s", "SENTINEL_USERNAME": "x"}, "'SENTINEL_KWARGS': {'username': ...}"),
        (
            {"SENTINELS": [("h", 1)], "SERVICE": "s", "SENTINEL_KWARGS": {"socket_timeout": 1}},
            r"Set REDIS_KIT\['READ_TIMEOUT'\]",
        ),
    ],
)
def test_option_that_belongs_elsewhere_is_told_where(settings, connection, said):
    with pytest.raises(ConfigurationError, match=said):
        found(settings, connection)
