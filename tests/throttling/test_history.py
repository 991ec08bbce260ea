"""Calls by hour: minutes that others replace move to their hour."""

from collections import defaultdict
from random import Random

import pytest
from asgiref.sync import async_to_sync

from redis_kit.core.errors import InvalidValue, KeyConflict, RedisUnavailable
from redis_kit.throttling import Throttle
from redis_kit.throttling.statistics import athrottle_history, throttle_history
from tests.throttling.support import other_times

MINUTE, HOUR, DAY = 60, 3600, 86_400
START = 1_760_000_000
FIELDS = 1 + 73 + 91  # of the hash
GAPS = (1, 20, 10 * MINUTE, 5 * HOUR, 4 * DAY)


class Calls:
    """Calls of three identities, and how many were allowed and refused in each minute and hour."""

    def __init__(self, rates="1/10m"):
        self.limit = Throttle("login", rates)
        self.by_minute, self.by_hour = defaultdict(lambda: [0, 0]), defaultdict(lambda: [0, 0])

    def hit(self, identity, second):
        """Make a call and note its answer."""
        place = 0 if other_times.hit(self.limit, identity, second) else 1
        self.by_minute[second // MINUTE][place] += 1
        self.by_hour[second // HOUR][place] += 1

    def minutes(self, second, count):
        """Return what was noted in the last minutes."""
        return {minute: calls for minute, calls in self.by_minute.items() if 0 <= second // MINUTE - minute < count}

    def hours(self, second, count):
        """Return what was noted in the last hours."""
        return {hour: calls for hour, calls in self.by_hour.items() if 0 <= second // HOUR - hour < count}


@pytest.fixture
def calls(kit):
    kit.options(THROTTLING={"REMEMBER": 0})
    return Calls()


@pytest.mark.parametrize("seed", [1, 2])
def test_hours_of_90_days_are_exact(calls, kit, seed):
    random, second = Random(seed), START
    for _ in range(1000):
        second += int(random.choice(GAPS) * random.uniform(0.2, 1.8))
        calls.hit(random.choice("abc"), second)
        if random.random() < 0.02:
            assert other_times.hours(calls.limit, second, 2160) == calls.hours(second, 2160)
            assert other_times.minutes(calls.limit, second, 4320) == calls.minutes(second, 4320)
    assert second - START > 300 * DAY
    assert 0 < len(calls.hours(second, 2160)) < len(calls.by_hour)
    assert kit.client.hlen(calls.limit.key("counts")) <= FIELDS
    assert 89 * DAY < kit.client.ttl(calls.limit.key("counts")) <= 90 * DAY
    assert 89 * DAY < kit.client.ttl(calls.limit.key("latest")) <= 90 * DAY


@pytest.mark.parametrize("jump", [-2 * HOUR, -80 * DAY, -START, 2 * HOUR, 80 * DAY, 5000 * DAY])
def test_clock_that_jumps_and_comes_back_loses_no_hour_it_need_not(calls, kit, jump):
    for at in range(0, 80 * HOUR, 20 * MINUTE):
        calls.hit("a", START + at)
    before, now = calls.hours(START + 80 * HOUR, 2160), START + 80 * HOUR
    for at in range(0, 2 * HOUR, 20 * MINUTE):
        other_times.hit(calls.limit, "b", now + jump + at)
    found = other_times.hours(calls.limit, now, 2160)
    lost = {hour for hour, true in before.items() if sum(found.get(hour, [0, 0])) < sum(true)}
    assert len(lost) <= (3 if abs(jump) > 90 * DAY else 0)
    calls.hit("a", now + DAY)
    assert sum(other_times.hours(calls.limit, now + DAY, 2160)[(now + DAY) // HOUR]) == 1
    assert kit.client.hlen(calls.limit.key("counts")) <= FIELDS


def test_server_that_forgot_its_last_seconds_counts_on(calls, kit):
    for at in range(0, 80 * HOUR, 20 * MINUTE):
        calls.hit("a", START + at)
    now, kept = START + 80 * HOUR, {key: kit.client.dump(key) for key in kit.keys()}
    for at in (0, 1):
        other_times.hit(calls.limit, "a", now + at)
    for key in kit.keys():
        kit.client.delete(key)
    for key, value in kept.items():
        kit.client.restore(key, 0, value)
    calls.hit("a", now + 2)
    assert other_times.hours(calls.limit, now + 2, 2160) == calls.hours(now + 2, 2160)


def test_any_bytes_are_read_and_written_without_an_error(calls, kit):
    key, random = calls.limit.key("counts"), Random(5)
    for size in (0, 3, 5, 200, 800):
        kit.client.delete(key)
        for field in (*range(73), *(f"d{day}" for day in range(91)), "other"):
            kit.client.hset(key, field, random.randbytes(size))
        for at in range(50):
            for identity in "ab":
                other_times.hit(calls.limit, identity, START + at * 7 * MINUTE)
        now = START + 49 * 7 * MINUTE
        assert sum(other_times.minutes(calls.limit, now, 1)[now // MINUTE]) == 2
        assert all(allowed >= 0 <= refused for allowed, refused in other_times.hours(calls.limit, now, 2160).values())


def test_hours_without_calls_are_zero(kit, commands):
    limit = Throttle("login", "2/h")
    limit.hit("joe")
    throttle_history(limit)  # the server learns the script
    with commands(kit) as sent:
        found = throttle_history(limit, hours=2160)
    assert sent == ["EVALSHA"]
    assert len(found) == 2160
    assert async_to_sync(athrottle_history)(limit, hours=2160)[-2159:] == found[-2159:]
    assert sum(each.allowed for each in found) == sum(each.allowed for each in found[-2:]) == 1
    assert found[-1].start.timestamp() % HOUR == 0
    assert not any(each.refused for each in found)


@pytest.mark.parametrize("wrong", [0, -1, 2161, 1.5, "1", None, True])
def test_wrong_number_of_hours_is_refused(kit, wrong):
    with pytest.raises(InvalidValue, match="from 1 to 2,160"):
        throttle_history(Throttle("login", "2/h"), hours=wrong)


def test_key_of_another_type_is_named(kit):
    limit = Throttle("login", "2/h")
    kit.client.rpush(limit.key("counts"), "foreign")
    with pytest.raises(KeyConflict, match="is a list in place of a hash"):
        throttle_history(limit)


def test_outage_is_raised(own_kit):
    own_kit.server.stop()
    with pytest.raises(RedisUnavailable):
        throttle_history(Throttle("login", "2/h"))
