"""The memory of a process: nothing that one test left there changes another."""

import re

import pytest
from django.test import override_settings

from redis_kit.core import connections
from redis_kit.core.checks.configuration import check_settings
from redis_kit.core.client.addresses import address
from redis_kit.core.errors import ConfigurationError
from redis_kit.locks import Lock
from redis_kit.pageviews import PageViews, batch
from redis_kit.pageviews.buffer import buffer
from redis_kit.queues import Queue
from redis_kit.queues.engine import enqueue
from redis_kit.testing.isolation import Isolation
from redis_kit.throttling import Throttle
from redis_kit.throttling.engine import memory


@pytest.fixture
def isolation(valkey, kit, monkeypatch):
    monkeypatch.delenv("REDIS_KIT_TEST_URL", raising=False)
    isolation = Isolation()
    isolation.start(lambda: valkey.url)
    yield isolation
    isolation.stop()


def test_nothing_of_a_test_is_remembered_in_the_next(isolation, settings):
    throttle = Throttle("mail", "1/h")
    assert [bool(throttle.hit("me")) for _ in range(2)] == [True, False]
    throttle.local_buckets.decide("me", 1, consume=True)
    Queue("mail").put({})
    PageViews("page").add("me")
    old = connections.client()
    assert memory._refusals
    assert memory._by_throttle
    assert enqueue._registered_queues
    isolation.renew()
    assert not memory._refusals
    assert not memory._by_throttle
    assert not enqueue._registered_queues
    assert buffer.waiting == 0
    assert connections.client() is not old
    assert throttle.hit("me")
    assert Queue("mail").counts().ready == 0


def test_override_settings_forgets_what_depends_on_the_server(kit):
    throttle = Throttle("mail", "1/h", on_failure="local")
    assert [bool(throttle.hit("me")) for _ in range(2)] == [True, False]
    throttle.local_buckets.decide("me", 1, consume=True)
    Queue("mail").put({})
    PageViews("page").add("me")
    buffer.flush()
    assert enqueue._registered_queues
    assert batch._admitted
    with override_settings(REDIS_KIT=kit.settings.REDIS_KIT):
        assert not memory._refusals
        assert not memory._by_throttle
        assert not enqueue._registered_queues
        assert not batch._admitted


def test_override_settings_leaves_leases_and_views_to_the_test(kit):
    lock = Lock("a", reentrant=True)
    lease = lock.acquire()
    with override_settings(REDIS_KIT=kit.settings.REDIS_KIT):
        assert Lock("a", reentrant=True).acquire() is lease
        PageViews("page").add("me")
    buffer.flush()
    assert PageViews("page").views() == 1


def test_connections_lead_to_tests_until_the_last_stop(isolation, settings, valkey, kit):
    settings.REDIS_KIT = {
        "CONNECTIONS": {"default": {"URL": "redis://real"}, "jobs": {"URL": "redis://r", "TEST": True}}
    }
    assert (address("default").url, address("jobs").url) == (valkey.url, "redis://r")
    isolation.start()
    isolation.stop()
    assert address("default").url == valkey.url
    settings.REDIS_KIT = {"CONNECTIONS": {"default": {"URL": "redis://r", "TEST": {"URL": "redis://t"}}}}
    assert address("default").url == "redis://t"
    kit.connect(kit.server.connection)


@pytest.mark.parametrize(
    ("test", "text"),
    [
        ("yes", "['TEST'] is text; it must be True, False or a dict."),
        ({"URL": "nope"}, "['TEST']['URL'] is 'nope'; it must be a server's URL."),
    ],
)
def test_wrong_option_for_tests_is_named(isolation, settings, test, text):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": {"URL": "redis://real", "TEST": test}}}
    (message,) = check_settings()
    assert message.msg == f"REDIS_KIT['CONNECTIONS']['default']{text}"
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        address("default")
