"""The live checks of a server: version, eviction policy and persistence."""

import ssl

import pytest
from django.utils import translation

from redis_kit.core.checks import servers
from redis_kit.core.checks.configuration import check_deployment, check_settings

GOOD = {"redis_version": "7.4.6", "maxmemory_policy": "noeviction", "aof_enabled": "1"}


def ids(**fields):
    return [problem.id for problem in servers.info_problems("It", {**GOOD, **fields})]


def test_a_good_server_passes():
    assert ids() == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"redis_version": "6.2.14"}, "E012"),
        ({"redis_version": "7.2.4", "valkey_version": "7.0.0"}, "E012"),
        ({"maxmemory_policy": "allkeys-lru"}, "W010"),
        ({"maxmemory_policy": "volatile-ttl"}, "W010"),
        ({"aof_enabled": "0"}, "W011"),
        ({"redis_version": "8.2.1"}, "W014"),
        ({"redis_version": "7.2.4", "valkey_version": "8.1.3"}, "W014"),
    ],
)
def test_wrong_connection_is_named(fields, expected):
    assert ids(**fields) == [expected]


def test_server_that_makes_no_snapshots_loses_all_data():
    (problem,) = servers.info_problems("It", {**GOOD, "aof_enabled": "0"})
    assert 'since the last snapshot, and all data if it makes none (save "").' in problem.message


def test_version_of_an_old_server_is_named_and_nothing_is_written_there(kit, monkeypatch):
    monkeypatch.setattr(servers, "information", lambda alias: {**GOOD, "redis_version": "6.2.14"})
    assert [message.id for message in check_deployment()] == ["redis_kit.E012"]
    assert kit.keys() == []


def test_deployment_check_looks_at_the_real_server(any_kit, settings):
    found = [message.id for message in check_deployment()]
    assert found == ["redis_kit.W011"]


def test_secret_key_that_was_changed_without_a_hash_key_is_a_warning(kit, settings):
    settings.SECRET_KEY_FALLBACKS = ["s" * 50]
    assert [message.id for message in check_deployment()] == ["redis_kit.W028", "redis_kit.W011"]
    settings.REDIS_KIT = {**settings.REDIS_KIT, "HASH_KEY": "s" * 50}
    assert [message.id for message in check_deployment()] == ["redis_kit.W011"]


def test_warning_about_the_settings_does_not_hide_the_server(kit, settings):
    settings.MIDDLEWARE = [
        "django.middleware.cache.UpdateCacheMiddleware",
        "redis_kit.pageviews.middleware.PageViewMiddleware",
    ]
    assert [message.id for message in check_settings()] == ["redis_kit.W024"]
    assert [message.id for message in check_deployment()] == ["redis_kit.W011"]


def test_eviction_policy_of_a_real_server(own_kit):
    own_kit.client.config_set("maxmemory-policy", "allkeys-lru")
    assert "redis_kit.W010" in [message.id for message in check_deployment()]


def test_another_project_with_the_same_prefix_is_a_warning(kit, settings):
    assert "redis_kit.W012" not in [message.id for message in check_deployment()]
    settings.ROOT_URLCONF = "shop.urls"
    (found,) = [message for message in check_deployment() if message.id == "redis_kit.W012"]
    assert "'tests'" in found.msg


def test_server_that_is_full_has_its_other_problems_too(own_kit):
    own_kit.client.config_set("maxmemory-policy", "volatile-lru")
    own_kit.client.config_set("maxmemory", 1)
    full, *others = check_deployment()
    assert (full.id, [message.id for message in others]) == ("redis_kit.W015", ["redis_kit.W010", "redis_kit.W011"])
    assert "Redis is full" in full.msg


def test_unreachable_server_is_a_warning(own_kit):
    own_kit.server.stop()
    assert [message.id for message in check_deployment()] == ["redis_kit.W015"]


def test_wrong_settings_are_not_looked_past(settings):
    settings.REDIS_KIT = {"PREFIX": ""}
    assert check_deployment() == []


def test_checks_are_english_in_every_language(kit, monkeypatch):
    monkeypatch.setattr(servers, "information", lambda alias: {**GOOD, "aof_enabled": "0"})
    with translation.override("zh-hans"):
        (problem,) = servers.problems("default")
    assert problem.text.isascii()


def test_connection_to_one_server_that_leads_to_a_cluster_is_an_error(kit, cluster):
    kit.connect({"URL": cluster.url})
    found = check_deployment()
    assert [message.id for message in found] == ["redis_kit.E019", "redis_kit.W011"]
    assert "'CLUSTER' in place of 'URL'" in found[0].hint
    kit.connect(cluster.connection)
    assert [message.id for message in check_deployment()] == ["redis_kit.W011"]


@pytest.mark.parametrize("option", [None, "none", ssl.CERT_NONE])
def test_connection_that_checks_no_certificate_is_a_warning(kit, option):
    entry = {"URL": "rediss://127.0.0.1:1", "SSL_CERT_REQS": option}
    kit.connect(entry)
    assert [message.id for message in check_deployment()] == ["redis_kit.W029", "redis_kit.W015"]
    kit.connect(entry | {"SSL_CERT_REQS": "required"})
    assert [message.id for message in check_deployment()] == ["redis_kit.W015"]
