"""Many throttles at once: reading them together gives the same as reading each of them."""

import pytest

from redis_kit.core import connections
from redis_kit.throttling import Throttle, shadow_report
from redis_kit.throttling.statistics.counters import MINUTES, decoded, recent
from redis_kit.throttling.statistics.overview import overview
from redis_kit.throttling.statistics.shadow_report import TOTALS

RING, COUNT = 4320, 2**32


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
    found = overview([shadow, login, free], minutes=5, offenders=20, rules=100)
    assert [one.throttle for one in found] == [shadow, login, free]
    alone = recent([shadow, login, free], minutes=5)
    assert [one.minutes for one in found] == [alone[one] for one in (shadow, login, free)]
    assert [one.offenders for one in found] == [one.offenders() for one in (shadow, login, free)]
    listed = [one.rules for one in found]
    assert [[rule.kind for rule in one] for one in listed] == [[], ["override", "ban"], []]
    assert [[rule.identity_hash for rule in one] for one in listed] == [
        [rule.identity_hash for rule in one.rules.list()] for one in (shadow, login, free)
    ]
    assert [one.rule_count for one in found] == [0, 2, 0]
    assert [one.override and one.override.rates for one in found] == [None, "5/m", None]
    assert [one.report for one in found] == [shadow_report(shadow), None, None]
    assert [one.can_have_rules for one in found] == [True, True, False]


def test_overview_of_no_throttle_asks_nobody(kit, commands):
    with commands(kit) as sent:
        assert overview([], minutes=5, offenders=20, rules=100) == []
    assert sent == []


@pytest.mark.parametrize("into", [0, 1, 700, 1439, 1440, 4319])
@pytest.mark.parametrize("wanted", [1, 30, 1440])
def test_totals_are_the_sums_of_the_minutes_wherever_the_ring_ends(kit, into, wanted):
    last = 29_000_000 // RING * RING + into
    throttle = Throttle("login", "1/h")
    fields = kit.client.bitfield(throttle.key("minutes"))
    for ago in range(0, 2000, 7):  # up to 1440 of them count
        minute = last - ago
        allowed, refused = minute // RING * COUNT + ago + 1, minute // RING * COUNT + 3
        fields.set("i64", f"#{minute % RING * 2}", allowed).set("i64", f"#{minute % RING * 2 + 1}", refused)
    stale = (last - 3) % RING * 2
    fields.set("i64", f"#{stale}", (last - 3) // RING * COUNT - COUNT + 99).execute()
    found = []
    for script in (MINUTES, TOTALS):
        assert script.source.count('redis.call("TIME")') == 1
        source = script.source.replace('redis.call("TIME")', f"({{{last * 60}}})")
        keys = throttle.key("minutes"), throttle.key("latest")
        found.append(connections.client().call("EVAL", source, 2, *keys, wanted))
    reply, totals = found
    minutes = decoded(wanted, *reply)
    assert minutes[-1].start.timestamp() == last * 60
    assert totals == [sum(minute.allowed for minute in minutes), sum(minute.refused for minute in minutes)]
    assert totals == [sum(ago + 1 for ago in range(0, wanted, 7)), 3 * len(range(0, wanted, 7))]


def test_totals_of_a_throttle_that_was_never_asked_are_zero(kit):
    call = TOTALS([Throttle("login", "1/h").key(part) for part in ("minutes", "latest")], [1440])
    assert call.run(connections.client()) == [0, 0]
