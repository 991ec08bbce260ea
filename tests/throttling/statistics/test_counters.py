"""Calls by minute."""

import pytest
from django.utils import timezone

from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.throttling import Throttle
from redis_kit.throttling.statistics.counters import recent

RING, ROUND = 4320, 2**32


def put(kit, limit, minute, allowed, refused):
    """Count calls in a minute of the past, as the script would have."""
    for place, calls in enumerate((allowed, refused)):
        kit.client.execute_command(
            "BITFIELD",
            limit.key("minutes"),
            "SET",
            "i64",
            f"#{minute % RING * 2 + place}",
            minute // RING * ROUND + calls,
        )


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


def test_counts_of_an_earlier_round_of_the_ring_are_ignored(kit):
    limit = Throttle("login", "2/h")
    this = int(kit.client.time()[0]) // 60
    for minute in (this - RING, this + 1 - RING):
        put(kit, limit, minute, 900, 900)
    limit.hit("joe")
    limit.hit("joe", cost=2)
    found = recent([limit], minutes=3)[limit]
    assert (sum(one.allowed for one in found), sum(one.refused for one in found)) == (1, 1)


def test_ring_takes_no_more_than_its_size(kit):
    limit = Throttle("login", "2/h")
    put(kit, limit, RING - 1, 1, 1)
    limit.hit("joe")
    assert kit.client.strlen(limit.key("minutes")) == RING * 16


def test_throttle_that_was_never_used_counts_nothing(kit):
    (found,) = recent([Throttle("login", "2/h")], minutes=1440).values()
    assert len(found) == 1440
    assert not any(one.allowed or one.refused for one in found)
    assert recent([]) == {}


def test_many_throttles_are_read_in_one_round_trip(kit, commands):
    limits = [Throttle(f"t{number}", "2/h") for number in range(20)]
    recent(limits)
    with commands(kit) as sent:
        recent(limits)
    assert sent == ["EVALSHA"] * 20


@pytest.mark.parametrize("minutes", [0, -1, 1441])
def test_number_of_minutes_is_checked(kit, minutes):
    with pytest.raises(InvalidValue, match="1 to 1440"):
        recent([Throttle("login", "2/h")], minutes=minutes)


def test_outage_is_raised(own_kit):
    limit = Throttle("login", "2/h")
    own_kit.server.stop()
    with pytest.raises(RedisUnavailable):
        recent([limit])
