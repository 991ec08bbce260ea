"""What the failure policy answers is said once for a component and its connection, and only of an outage."""

import logging
from typing import Literal, get_args, get_type_hints

import pytest

from redis_kit.core import primitive
from redis_kit.core.component import components
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.throttling import Throttle


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(primitive, "_unavailable", set())
    monkeypatch.setattr(primitive, "_log_limit", LogRateLimit())


def said(caplog, words):
    return [message for message in caplog.messages if words in message]


def test_outage_of_one_connection_is_logged_once(kit, make_server, caplog, twin):
    away = make_server(tcp=True)
    kit.options(CONNECTIONS={**kit.settings.REDIS_KIT["CONNECTIONS"], "away": away.connection})
    well, ill = Throttle("well", rates="1000/m"), Throttle("ill", rates="1000/m", using="away")
    with caplog.at_level(logging.WARNING, "redis_kit"):
        twin(ill.hit, "me")
        away.stop()
        for _ in range(10):
            assert twin(ill.hit, "me").reason == "outage"
            assert twin(well.hit, "me").reason == ""
    (line,) = said(caplog, "Redis failed")
    assert line.startswith("throttling: Redis failed; calls are allowed (policy 'open'): ")
    assert not said(caplog, "answers again")


def test_key_of_a_wrong_type_is_not_an_outage(kit, caplog, twin):
    good, bad = Throttle("good", rates="1000/m"), Throttle("bad", rates="1000/m")
    for key in bad.keys("me")[:2]:
        kit.client.lpush(key, "x")
    with caplog.at_level(logging.WARNING, "redis_kit"):
        for _ in range(10):
            assert twin(bad.hit, "me").reason == "outage"
            assert twin(good.hit, "me").reason == ""
    (line,) = said(caplog, "a call failed")
    assert "something else wrote to it" in line
    assert not said(caplog, "Redis failed")
    assert not said(caplog, "answers again")


@pytest.mark.parametrize("kind", [component.settings for component in components()])
def test_every_policy_that_answers_says_what_it_means(kind):
    hint = get_type_hints(kind).get("ON_FAILURE", Literal["raise"])
    assert kind.policies.keys() == set(get_args(hint)) - {"raise"}
