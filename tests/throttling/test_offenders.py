"""The identities that are refused most often."""

import asyncio

import pytest

from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.core.keys import hashed
from redis_kit.throttling import Throttle
from redis_kit.throttling.engine import memory
from redis_kit.throttling.statistics import Offender


@pytest.fixture(params=["sync", "async"])
def most(request):
    """Call offenders(), or its twin."""
    if request.param == "sync":
        return Throttle.offenders
    return lambda *args: asyncio.run(Throttle.aoffenders(*args))


@pytest.fixture
def limit(kit):
    """A throttle that refused joe twice and ann three times, and asked the server each time."""
    found = Throttle("login", "1/h")
    for caller in ["joe"] * 3 + ["ann"] * 4 + ["bob"]:
        found.hit(caller)
        memory._refusals.clear()
    return found


def test_those_refused_most_come_first_and_others_not_at_all(limit, most):
    assert most(limit) == [Offender(hashed("ann"), "ann", 3), Offender(hashed("joe"), "joe", 2)]
    assert most(limit, 1) == most(limit)[:1]
    assert most(Throttle("other", "1/h")) == []


def test_refusals_from_memory_are_counted_with_the_next_call(kit, most):
    limit = Throttle("login", "1/h")
    for _ in range(11):
        limit.hit("joe")
    for key, refusal in memory._refusals.items():
        refusal.until = 0
        assert key[1] == "joe"
    limit.hit("joe")
    assert [one.refusals for one in most(limit)] == [11]


@pytest.mark.parametrize(
    ("shown", "text"), [("plain", "ip:203.0.113.7"), ("masked", "ip:203.0.113.***"), ("hashed", "")]
)
def test_setting_says_what_is_kept_of_them(kit, shown, text, most):
    kit.options(THROTTLING={"OFFENDERS": shown})
    limit = Throttle("login", "1/h")
    for _ in range(2):
        limit.hit("ip:203.0.113.7")
    assert most(limit) == [Offender(hashed("ip:203.0.113.7"), text, 1)]
    (stored,) = kit.client.zrange(limit.key("offenders"), 0, -1)
    assert stored == f"{hashed('ip:203.0.113.7')} {text}"
    assert 0 < kit.client.ttl(limit.key("offenders")) <= 86_400


def test_identity_is_listed_once_after_a_change_of_the_setting(limit, kit, most):
    kit.options(THROTTLING={"OFFENDERS": "hashed"})
    for _ in range(2):
        limit.hit("joe")
        memory._refusals.clear()
    assert kit.client.zcard(limit.key("offenders")) == 3
    assert most(limit)[0] == Offender(hashed("joe"), "joe", 4)


def test_text_with_spaces_stays_whole(kit, most):
    limit = Throttle("login", "1/h")
    for _ in range(2):
        limit.hit("name:a b  c")
    assert most(limit)[0].shown == "name:a b  c"


def test_value_of_a_header_is_not_stored_and_leads_to_its_identity(kit, most):
    limit = Throttle("api", "1/h")
    for _ in range(2):
        limit.hit("header:sk_live_51H8secret")
    (offender,) = most(limit)
    assert offender.shown == "header:sk_***"
    limit.rules.ban(identity_hash=offender.identity_hash, seconds=60)
    assert limit.rules.of("header:sk_live_51H8secret").kind == "ban"
    assert limit.rules.ban("header:sk_live_51H8secret", 60).shown == "header:sk_***"
    for key in kit.keys():
        assert "secret" not in str(kit.client.dump(key))


@pytest.mark.parametrize("number", [0, 101, True, "5", None])
def test_length_of_the_list_is_checked(limit, number, most):
    with pytest.raises(InvalidValue, match="1 to 100"):
        most(limit, number)


def test_one_command(limit, kit, commands, most):
    most(limit)
    with commands(kit) as sent:
        most(limit)
    assert sent == ["ZREVRANGE"]


def test_outage_is_raised(own_kit, most):
    limit = Throttle("login", "1/h")
    own_kit.server.stop()
    with pytest.raises(RedisUnavailable):
        most(limit)
