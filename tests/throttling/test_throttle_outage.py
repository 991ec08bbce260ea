"""Throttles while the server is unavailable: never an error."""

import asyncio
import time

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from redis_kit.core.errors import RedisUnavailable
from redis_kit.throttling import Throttle, throttle

pytestmark = pytest.mark.alone(6)


@pytest.fixture
def away(own_kit):
    own_kit.server.stop()
    return own_kit


def test_open_allows(away, twin):
    limit = Throttle("login", "1/h", on_failure="open")
    decisions = [twin(limit.hit, "joe") for _ in range(5)]
    assert all(decisions)
    assert decisions[0] == (True, 1, 1, 0.0, 0.0, None, "outage")
    assert twin(limit.peek, "joe")


def test_closed_refuses_and_says_when_to_come_again(away, twin):
    limit = Throttle("login", "1/h", on_failure="closed")
    decision = twin(limit.hit, "joe")
    assert (decision.allowed, decision.remaining, decision.retry_after) == (False, 0, 1.0)
    assert not twin(limit.peek, "joe")


def test_local_counts_in_this_process(away, twin):
    limit = Throttle("login", "3/h; 5/d", on_failure="local")
    assert twin(limit.peek, "joe").remaining == 3
    decisions = [twin(limit.hit, "joe") for _ in range(5)]
    assert [bool(one) for one in decisions] == [True, True, True, False, False]
    assert decisions[3].retry_after == pytest.approx(1200, abs=5)
    assert twin(limit.hit, "ann")


def test_reset_says_that_it_did_not_happen(away, twin):
    with pytest.raises(RedisUnavailable):
        twin(Throttle("login", "1/h").reset, "joe")


def test_policy_of_the_settings_is_that_of_throttles_without_one(away):
    assert Throttle("login", "1/h").hit("joe")
    away.options(THROTTLING={"ON_FAILURE": "closed"})
    assert not Throttle("login", "1/h").hit("joe")
    assert Throttle("login", "1/h", on_failure="open").hit("joe")


@pytest.mark.parametrize("trouble", ["stop", "freeze"])
@pytest.mark.parametrize(("policy", "statuses"), [("open", {200}), ("closed", {503}), ("local", {200, 429})])
def test_guarded_view_is_never_an_error_and_never_slow(own_kit, policy, statuses, trouble):
    @throttle("5/h", key="ip", name="view", on_failure=policy)
    def view(request):
        return HttpResponse("fresh")

    @throttle("5/h", key="ip", name="async-view", on_failure=policy)
    async def async_view(request):
        return HttpResponse("fresh")

    async def several():
        return [await async_view(RequestFactory().get("/")) for _ in range(10)]

    getattr(own_kit.server, trouble)()
    began = time.monotonic()
    responses = [view(RequestFactory().get("/")) for _ in range(10)] + asyncio.run(several())
    assert time.monotonic() - began < 4.5  # 20 calls that all wait for a frozen server take 5 s
    own_kit.server.thaw() if trouble == "freeze" else None
    assert {response.status_code for response in responses} == statuses
    assert all(response["Retry-After"] for response in responses if response.status_code != 200)


def test_refusals_of_an_outage_are_not_remembered(own_kit):
    limit = Throttle("login", "5/h", on_failure="closed")
    own_kit.server.stop()
    assert not limit.hit("joe")
    own_kit.server.start()
    assert limit.hit("joe")


def test_server_that_is_full_is_an_outage_too(own_kit):
    limit = Throttle("login", "1/h", on_failure="closed")
    limit.hit("joe")
    with own_kit.server.client() as client:
        client.config_set("maxmemory", 1)
    assert not limit.hit("ann")
    assert Throttle("api", "1/h").hit("ann")
    assert limit.reset("joe")


@pytest.mark.parametrize("policy", ["open", "closed"])
def test_key_that_something_else_wrote_to_is_answered_by_the_policy(kit, policy):
    limit = Throttle("login", "1/h", on_failure=policy)
    kit.client.rpush(limit.key("counts"), "foreign")
    assert limit.hit("joe").allowed == (policy == "open")


def test_server_that_refuses_the_password_is_answered_by_the_policy(own_kit):
    with own_kit.server.client() as client:
        client.config_set("requirepass", "secret")
    assert Throttle("login", "1/h").hit("joe")
    assert not Throttle("login", "1/h", on_failure="closed").hit("joe")


def test_local_counts_the_same_for_every_object_of_a_throttle(own_kit):
    own_kit.server.stop()
    answers = [Throttle("login", "2/h", on_failure="local").hit("joe").allowed for _ in range(4)]
    assert answers == [True, True, False, False]
