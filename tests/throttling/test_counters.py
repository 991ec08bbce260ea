"""Calls by minute."""

from struct import pack

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.throttling import Throttle, hit_all
from redis_kit.throttling.statistics import arecent, recent, throttle_history
from tests.throttling.support import other_times

CALLS = 2**26


def put(kit, limit, minute, allowed, refused):
    """Count calls in a minute of the past, as the script would have."""
    block = pack("<IBII", minute // 60, minute % 60, allowed, refused)
    kit.client.hset(limit.key("counts"), minute // 60 % 73, block)


def test_minutes_come_with_the_oldest_first_and_the_current_one_last(kit):
    limit = Throttle("login", "2/h")
    for caller in ("joe", "ann", "bob"):
        limit.hit(caller)
    this = int(kit.client.time()[0]) // 60
    put(kit, limit, this - 2, 7, 5)
    found = recent([limit], minutes=5)[limit]
    last = int(found[-1].start.timestamp()) // 60
    assert 0 <= last - this <= 1  # the minute may have turned meanwhile
    assert [(one.allowed, one.refused) for one in found if one.start.timestamp() == (this - 2) * 60] == [(7, 5)]
    assert sum(one.allowed for one in found) == 10
    assert found[-1].start <= timezone.now()


def test_counts_of_an_earlier_cycle_are_ignored(kit):
    limit = Throttle("login", "2/h")
    this = int(kit.client.time()[0]) // 60
    for minute in (this - 73 * 60, this - 73 * 60 - 2):
        put(kit, limit, minute, 900, 900)
    limit.hit("joe")
    limit.hit("joe", cost=2)
    found = recent([limit], minutes=3)[limit]
    assert (sum(one.allowed for one in found), sum(one.refused for one in found)) == (1, 1)


def test_name_takes_memory_for_the_minutes_with_calls_only(kit):
    def memory(key):
        return kit.client.memory_usage(key)

    called, refused = Throttle("called", "9/h"), Throttle("refused", "1/h")
    other_times.hit(called, "joe", 1_760_000_000)
    for second in range(0, 7200, 40):
        other_times.hit(refused, "joe", 1_760_000_000 + second)
    assert sum(memory(key) for key in kit.keys() if "called" in key) < 500
    assert memory(refused.key("counts")) < 2_000  # 120 minutes


def test_busy_throttle_takes_no_more_than_80_kb(kit):
    limit = Throttle("login", "5/m", clock=lambda: 1_760_000_000.0)
    hours = [(str(hour), pack("<I", 490_000 + hour) + pack("<BII", 0, 7, 7) * 60) for hour in range(73)]
    days = [(f"d{day}", pack("<I", 20_000 + day) + pack("<BII", 0, 7, 7) * 24) for day in range(91)]
    kit.client.hset(limit.key("counts"), mapping={"refused": 2**50, **dict(hours + days)})
    assert kit.client.memory_usage(limit.key("counts"), samples=0) < 80_000


@pytest.mark.parametrize("ago", [1, 7, -3, 1439])
def test_first_call_of_a_minute_keeps_the_count_of_the_former_one(kit, ago):
    limit = Throttle("login", "2/h")
    then = int(kit.client.time()[0]) // 60 - ago
    put(kit, limit, then, 4, 0)
    kit.client.set(limit.key("latest"), then * CALLS + 5, ex=1000)
    before = sum(one.allowed for one in recent([limit], minutes=1440)[limit])
    limit.hit("joe")
    found = recent([limit], minutes=1440)[limit]
    by_minute = {one.start.timestamp() // 60: one.allowed for one in found if one.allowed}
    assert before == (9 if ago > 0 else 0)
    assert sum(by_minute.values()) == before + 1
    assert by_minute.get(then) == (9 if ago > 0 else None)
    assert sum(one.allowed for one in throttle_history(limit, hours=48)) in ((10,) if ago > 0 else (1, 10))
    assert 0 < kit.client.ttl(limit.key("latest")) <= 90 * 86_400


@pytest.mark.parametrize("latest", [None, 5, 27_000_000 * CALLS + 5])
def test_minutes_of_a_wrong_type_are_found_before_anything_is_changed(kit, latest):
    limit = Throttle("login", "2/h")
    kit.client.rpush(limit.key("counts"), "foreign")
    if latest:
        kit.client.set(limit.key("latest"), latest, ex=1000)
    before = {key: kit.client.dump(key) for key in kit.keys()}
    assert limit.hit("joe").reason == "outage"
    assert [one.reason for one in hit_all([(limit, "joe")])] == ["outage"]
    assert {key: kit.client.dump(key) for key in kit.keys()} == before
    assert not latest or 0 < kit.client.ttl(limit.key("latest")) <= 1000


@pytest.mark.parametrize("latest", ["", "x", "1.5", "9" * 400])
def test_latest_minute_that_is_no_number_changes_nothing(kit, latest):
    limit, other = Throttle("login", "2/h"), Throttle("other", "2/h")
    kit.client.set(limit.key("latest"), latest)
    assert limit.hit("joe").reason == "outage"
    assert [one.reason for one in hit_all([(other, "joe"), (limit, "joe")])] == ["outage", "outage"]
    assert kit.keys() == [limit.key("latest")]
    assert kit.client.get(limit.key("latest")) == latest


@pytest.mark.parametrize("latest", [-5, 0, 2**62, 2**63 - 2])
def test_latest_minute_of_any_number_breaks_nothing(kit, latest):
    limit = Throttle("login", "2/h")
    kit.client.set(limit.key("latest"), latest)
    assert limit.hit("joe").reason == ""
    assert recent([limit], minutes=2)[limit][-1].allowed >= 1


def test_throttle_that_was_never_used_counts_nothing(kit):
    (found,) = recent([Throttle("login", "2/h")], minutes=1440).values()
    assert len(found) == 1440
    assert not any(one.allowed or one.refused for one in found)
    assert recent([]) == {}


def test_many_throttles_are_read_in_one_round_trip(kit, commands):
    limits = [Throttle(f"t{number}", "2/h") for number in range(20)]
    recent(limits)
    with commands(kit) as sent:
        found = recent(limits, minutes=4320)
    assert sent == ["EVALSHA"] * 20
    assert {len(minutes) for minutes in found.values()} == {4320}
    assert async_to_sync(arecent)(limits, minutes=9).keys() == found.keys()


@pytest.mark.parametrize("minutes", [0, -1, 4321])
def test_number_of_minutes_is_checked(kit, minutes):
    with pytest.raises(InvalidValue, match="1 to 4,320"):
        recent([Throttle("login", "2/h")], minutes=minutes)


def test_outage_is_raised(own_kit):
    limit = Throttle("login", "2/h")
    own_kit.server.stop()
    with pytest.raises(RedisUnavailable):
        recent([limit])
