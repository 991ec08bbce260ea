"""Many throttles at once: reading them together gives the same as reading each of them."""

from struct import pack

import pytest

from redis_kit.throttling import Throttle, shadow_report
from redis_kit.throttling.dashboard.panel import overview
from redis_kit.throttling.rules import can_have_rules
from redis_kit.throttling.statistics import recent
from tests.throttling.support import other_times

CYCLE = 73 * 60  # minutes


def test_overview_is_what_each_part_says_by_itself(any_kit):
    any_kit.options(THROTTLING={"REMEMBER": 0})
    login = Throttle("login", "1/h")
    shadow = Throttle("search", "2/h", shadow=True, strategy="fixed_window")
    free = Throttle("free", None)
    for caller in ("joe", "joe", "joe", "ann", "ann"):
        login.hit(caller)
        shadow.hit(caller)
    login.rules.ban("eve", 60)
    login.rules.override("5/m", 60)
    found = overview([shadow, login, free])
    assert [one.throttle for one in found] == [shadow, login, free]
    alone = recent([shadow, login, free])
    assert [one.minutes for one in found] == [alone[one] for one in (shadow, login, free)]
    assert [one.offenders for one in found] == [one.offenders() for one in (shadow, login, free)]
    listed = [one.rules for one in found]
    assert [[rule.kind for rule in one] for one in listed] == [[], ["override", "ban"], []]
    assert [[rule.identity_hash for rule in one] for one in listed] == [
        [rule.identity_hash for rule in one.rules.list()] for one in (shadow, login, free)
    ]
    assert [one.rule_count for one in found] == [0, 2, 0]
    assert [one.report for one in found] == [shadow_report(shadow), None, None]
    assert [can_have_rules(one) for one in (shadow, login, free)] == [True, True, False]


def test_overview_of_no_throttle_asks_nobody(kit, commands):
    with commands(kit) as sent:
        assert overview([]) == []
    assert sent == []


@pytest.mark.parametrize("into", [0, 1, 59, 60, 4379])
@pytest.mark.parametrize("wanted", [1, 30, 1440, 4320])
def test_minutes_are_read_wherever_the_cycle_of_hours_ends(kit, into, wanted):
    limit, last = Throttle("login", "1/h", shadow=True), 29_000_000 // CYCLE * CYCLE + into
    for hour in range(last // 60 - 72, last // 60 + 1):
        minutes = range(hour * 60, min(hour * 60 + 60, last + 1))
        slots = b"".join(pack("<BII", minute % 60, last - minute + 1, 3) for minute in minutes)
        kit.client.hset(limit.key("counts"), hour % 73, pack("<I", hour) + slots)
    found = other_times.minutes(limit, last * 60, wanted)
    assert found == {last - ago: [ago + 1, 3] for ago in range(wanted)}
