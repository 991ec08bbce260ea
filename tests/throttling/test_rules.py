"""Rules of operators: bans, exemptions and other rates."""

import math
from datetime import timedelta

import pytest
from django.utils import timezone

from redis_kit.core.errors import InvalidName, InvalidValue, KeyConflict, RedisUnavailable
from redis_kit.core.keys import hashed
from redis_kit.throttling import Ban, InvalidRate, Throttle, rules
from redis_kit.throttling.engine import memory
from redis_kit.throttling.rules import Rule, counts
from tests.fixtures.servers import wait_for

STRATEGIES = ["gcra", "token_bucket", "fixed_window", "sliding_counter", "sliding_log"]
YEAR = 366 * 86_400


def ends_in(rule, seconds):
    return abs(rule.until - timezone.now() - timedelta(seconds=seconds)) < timedelta(seconds=10)


def index(kit, limit):
    return kit.client.zrange(limit.key("rules"), 0, -1)


def test_banned_identity_is_refused_until_the_ban_ends(any_kit, twin):
    limit = Throttle("login", "5/m")
    rule = twin(limit.rules.ban, "joe", 600)
    decision = twin(limit.hit, "joe")
    assert (decision.allowed, decision.reason) == (False, "banned")
    assert decision.retry_after == pytest.approx(600, abs=5)
    assert twin(limit.hit, "ann")
    assert rule[:3] == ("ban", hashed("joe"), "joe")
    assert ends_in(rule, 600)
    assert rule.until.tzinfo is not None


def test_exempt_identity_passes_uncounted(any_kit, twin):
    limit = Throttle("login", "1/h")
    rule = twin(limit.rules.exempt, "joe", 600)
    assert [twin(limit.hit, "joe").reason for _ in range(3)] == ["exempt"] * 3
    assert twin(limit.rules.lift, "joe")
    assert twin(limit.hit, "joe")
    assert rule.kind == "exempt"
    assert ends_in(rule, 600)


def test_identity_may_have_other_rates(any_kit, twin):
    limit = Throttle("login", "1/h")
    rule = twin(limit.rules.override, "3/h; 10/d", 600, "joe")
    decisions = [twin(limit.hit, "joe") for _ in range(4)]
    assert [bool(one) for one in decisions] == [True, True, True, False]
    assert str(decisions[3].rate) == "3/h"
    assert [bool(twin(limit.hit, "ann")) for _ in range(2)] == [True, False]
    assert rule == ("override", hashed("joe"), "joe", rule.until, "3/h; 10/d")
    assert ends_in(rule, 600)


def test_override_of_one_identity_precedes_that_for_all(any_kit, twin):
    limit = Throttle("login", "1/h")
    rule = twin(limit.rules.override, "2/h", 600)
    twin(limit.rules.override, "3/h", 600, "joe")
    assert [bool(twin(limit.hit, "ann")) for _ in range(3)] == [True, True, False]
    assert [bool(twin(limit.hit, "joe")) for _ in range(4)] == [True, True, True, False]
    assert rule == ("override", "", "", rule.until, "2/h")
    assert ends_in(rule, 600)
    assert twin(limit.rules.of) == rule
    assert twin(limit.rules.lift)
    assert not twin(limit.rules.lift)
    assert twin(limit.rules.of) is None
    assert str(twin(limit.peek, "bob").rate) == "1/h"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_override_counts_by_the_strategy_of_its_throttle(kit, strategy, twin):
    limit = Throttle("login", "1/h", strategy=strategy)
    twin(limit.hit, "joe")
    twin(limit.rules.override, "4/h; 50/d", 600, "joe")
    decisions = [twin(limit.hit, "joe") for _ in range(5)]
    assert [one.remaining for one in decisions] == [3, 2, 1, 0, 0]
    assert not decisions[4]
    assert 0 < decisions[4].retry_after <= 7200
    assert twin(limit.rules.lift, "joe")
    assert twin(limit.hit, "joe")  # a caller whose rates change starts anew
    assert not twin(limit.hit, "joe")


def test_rates_of_an_identity_leave_no_count_for_the_next_rule(kit, twin):
    limit = Throttle("login", "1/h")
    twin(limit.rules.override, "2/h", 600, "joe")
    for _ in range(2):
        assert twin(limit.hit, "joe")
    twin(limit.rules.exempt, "joe", 600)
    assert not kit.client.exists(limit.keys("joe").state)


def test_counted_calls_outlast_a_ban(kit, twin):
    limit = Throttle("login", "1/h")
    limit.hit("joe")
    twin(limit.rules.ban, "joe", 600)
    twin(limit.rules.lift, "joe")
    assert not limit.hit("joe")


def test_rule_takes_hold_at_once_in_its_own_process(kit, twin):
    limit, same = Throttle("login", "1/h"), Throttle("login", "2/d")
    for one in (limit, same, same):
        one.hit("joe", cost=1)
    for one in (limit, same):
        assert not one.hit("joe")
    assert len(memory._refusals) >= 2
    twin(limit.rules.exempt, "joe", 60)
    assert limit.hit("joe")
    assert same.hit("joe")
    twin(limit.rules.ban, "joe", 60)
    assert limit.hit("joe").reason == "banned"
    assert twin(limit.rules.lift, identity_hash=hashed("joe"))
    assert limit.hit("joe").reason != "banned"


def test_override_for_all_takes_effect_at_once_in_its_own_process(kit, twin):
    limit = Throttle("login", "1/h", strategy="fixed_window")
    for caller in ("joe", "joe", "ann", "ann"):
        limit.hit(caller)
    twin(limit.rules.override, "9/h", 60)
    assert limit.hit("joe")
    assert limit.hit("ann")


def test_rule_of_another_process_takes_hold_when_what_is_remembered_ends(kit):
    limit = Throttle("login", "1/h")
    limit.hit("joe")
    assert not limit.hit("joe")
    remembered = dict(memory._refusals)
    limit.rules.exempt("joe", 60)
    memory._refusals.update(remembered)  # as if another process had set it
    assert not limit.hit("joe")
    wait_for(lambda: limit.hit("joe").reason == "exempt", timeout=3)


def test_other_identities_are_not_forgotten(kit, commands):
    limit, other = Throttle("login", "1/h"), Throttle("other", "1/h")
    for one, caller in ((limit, "joe"), (limit, "ann"), (other, "joe")):
        one.hit(caller)
        one.hit(caller)
    limit.rules.exempt("joe", 60)
    with commands(kit) as sent:
        assert not limit.hit("ann")
        assert not other.hit("joe")
    assert sent == []


def test_rule_can_be_set_by_the_hash_that_lists_show(kit, twin):
    limit = Throttle("login", "1/h")
    limit.hit("ip:203.0.113.7")
    limit.hit("ip:203.0.113.7")
    by_hash = {"identity_hash": hashed("ip:203.0.113.7")}
    rule = twin(limit.rules.ban, **by_hash, seconds=60)
    assert rule.shown == "ip:203.0.113.7"  # as offenders name it
    assert twin(limit.hit, "ip:203.0.113.7").reason == "banned"
    assert twin(limit.rules.of, **by_hash).shown == twin(limit.rules.list)[0].shown == "ip:203.0.113.7"
    assert (
        twin(limit.rules.exempt, **by_hash, seconds=60).kind == twin(limit.rules.of, "ip:203.0.113.7").kind == "exempt"
    )
    assert twin(limit.rules.override, "7/h", 60, **by_hash).rates == "7/h"
    assert twin(limit.hit, "ip:203.0.113.7").limit == 7
    assert len(index(kit, limit)) == 1
    assert twin(limit.rules.lift, **by_hash)
    assert twin(limit.rules.list) == []
    assert index(kit, limit) == []


def test_identity_without_an_entry_is_shown_by_its_hash(kit, twin):
    limit = Throttle("login", "1/h")
    assert twin(limit.rules.ban, identity_hash=hashed("joe"), seconds=60).shown == ""
    assert twin(limit.rules.of, identity_hash=hashed("joe")).shown == ""
    assert twin(limit.rules.of, identity_hash=hashed("ann")) is None
    assert twin(limit.rules.ban, "joe", 60).shown == "joe"
    assert twin(limit.rules.of, identity_hash=hashed("joe")).shown == "joe"
    assert len(index(kit, limit)) == 1


@pytest.mark.parametrize(("shown", "text"), [("plain", "user:12345"), ("masked", "user:123***"), ("hashed", "")])
def test_lists_show_what_the_setting_allows(kit, shown, text, twin):
    kit.options(THROTTLING={"OFFENDERS": shown})
    limit = Throttle("login", "1/h")
    assert twin(limit.rules.ban, "user:12345", 60).shown == text
    assert [rule.shown for rule in twin(limit.rules.list)] == [text]
    assert index(kit, limit) == [f"{hashed('user:12345')} {text}"]


def test_list_is_of_what_holds_for_everybody_first_then_of_what_ends_first(kit, twin):
    limit = Throttle("login", "9/h", ban=Ban(after=1, within=60, seconds=30))
    limit.rules.ban("late", 500)
    limit.rules.override("4/h", 300, "joe")
    limit.rules.exempt("ann", 100)
    limit.rules.override("1/h", 900)
    found = twin(limit.rules.list)
    assert [(rule.kind, rule.shown, rule.rates) for rule in found] == [
        ("override", "", "1/h"),
        ("exempt", "ann", ""),
        ("override", "joe", "4/h"),
        ("ban", "late", ""),
    ]
    assert [ends_in(rule, seconds) for rule, seconds in zip(found, (900, 100, 300, 500), strict=True)] == [True] * 4
    assert twin(limit.rules.list, 2) == found[:2]
    other = Throttle("other", "1/h")
    assert counts([limit, other]) == {limit: 4, other: 0}


def test_ban_that_the_throttle_imposed_is_listed_and_can_be_lifted(kit, twin):
    limit = Throttle("login", "1/h", ban=Ban(after=2, within=60, seconds=30))
    for _ in range(3):
        limit.hit("joe")
        memory._refusals.clear()
    (rule,) = twin(limit.rules.list)
    assert (rule.kind, rule.identity_hash, rule.shown) == ("ban", hashed("joe"), "joe")
    assert ends_in(rule, 30)
    assert twin(limit.rules.of, "joe") == rule
    assert twin(limit.rules.lift, "joe")
    assert twin(limit.rules.list) == []
    assert limit.peek("joe").reason == ""


def test_ban_of_an_operator_does_not_shorten_the_next_of_the_throttle(kit, twin):
    limit = Throttle("login", "1/h", ban=Ban(after=1, within=60, seconds=(30, 500)))
    limit.hit("joe")
    limit.hit("joe")
    twin(limit.rules.ban, "joe", 0.001)
    wait_for(lambda: limit.peek("joe").reason == "")
    assert limit.rules.of("joe") is None
    assert not limit.rules.lift("joe")
    memory._refusals.clear()
    assert not limit.hit("joe")
    assert ends_in(limit.rules.of("joe"), 500)


def test_refusals_that_count_towards_a_ban_are_no_rule(kit, twin):
    limit = Throttle("login", "1/h", ban=Ban(after=5, within=60, seconds=30))
    limit.hit("joe")
    limit.hit("joe")
    assert kit.client.get(limit.keys("joe").standing).startswith("s ")
    assert twin(limit.rules.of, "joe") is None
    assert not twin(limit.rules.lift, "joe")
    assert kit.client.exists(limit.keys("joe").standing)


def test_rule_that_was_reset_is_not_shown(kit, twin):
    limit = Throttle("login", "1/h")
    limit.rules.ban("joe", 60)
    limit.rules.exempt("ann", 60)
    kit.client.delete(limit.keys("joe").standing)
    assert [rule.shown for rule in twin(limit.rules.list)] == ["ann"]


def test_rules_end_by_themselves_and_leave_nothing(kit, twin):
    limit = Throttle("login", "1/h")
    for set_ in (limit.rules.ban, limit.rules.exempt):
        twin(set_, set_.__name__, 0.05)
    twin(limit.rules.override, "5/h", 0.05, "joe")
    twin(limit.rules.override, "5/h", 0.05)
    wait_for(lambda: not limit.rules.list())
    assert counts([limit]) == {limit: 0}
    wait_for(lambda: kit.keys() == [limit.key("rules")])
    limit.rules.ban("ann", 60)
    assert [member.split()[1] for member in index(kit, limit)] == ["ann"]


def test_every_key_expires(kit, twin):
    limit = Throttle("login", "1/h")
    twin(limit.rules.ban, "joe", 50)
    twin(limit.rules.exempt, "ann", 60)
    twin(limit.rules.override, "5/h", 70, "bob")
    twin(limit.rules.override, "5/h", 80)
    lasting = {key: kit.client.ttl(key) for key in kit.keys()}
    assert len(lasting) == 5
    assert lasting.pop(limit.key("rules")) == pytest.approx(YEAR, abs=5)
    assert sorted(lasting.values()) == pytest.approx([50, 60, 70, 80], abs=5)


def test_index_is_bounded_and_forgets_what_ends_first(kit, twin):
    limit = Throttle("login", "1/h")
    later = int(kit.client.time()[0] + 1000) * 1000
    kit.client.zadd(limit.key("rules"), {f"{number:022} x": later + number for number in range(10_000)})
    twin(limit.rules.ban, "joe", 5000)
    assert kit.client.zcard(limit.key("rules")) == 10_000
    assert kit.client.zscore(limit.key("rules"), f"{0:022} x") is None
    assert [rule.shown for rule in twin(limit.rules.list, 10_000)] == ["joe"]


def test_rule_of_a_named_identity_is_set_without_going_through_all_rules(kit, twin):
    limit = Throttle("login", "1/h")
    kit.client.config_resetstat()
    for rule in (limit.rules.ban, limit.rules.exempt):
        twin(rule, "joe", 60)
    assert twin(limit.rules.lift, "joe")
    assert {"cmdstat_zscan", "cmdstat_zrange"}.isdisjoint(kit.client.info("commandstats"))


def test_identity_is_found_among_many_by_its_hash(kit, twin):
    limit = Throttle("login", "1/h")
    kit.client.zadd(limit.key("rules"), {f"{number:022} x": 2e15 + number for number in range(9000)})
    limit.rules.ban("joe", 5000)
    assert twin(limit.rules.of, identity_hash=hashed("joe")).shown == "joe"
    assert twin(limit.rules.exempt, identity_hash=hashed("joe"), seconds=60).shown == "joe"
    assert twin(limit.rules.lift, identity_hash=hashed("joe"))
    assert kit.client.zcard(limit.key("rules")) == 9000


def test_rule_replaces_an_entry_from_another_setting(kit, twin):
    limit = Throttle("login", "1/h")
    for shown in ("plain", "masked", "hashed"):
        kit.options(THROTTLING={"OFFENDERS": shown})
        twin(limit.rules.ban, "user:12345", 60)
        assert len(index(kit, limit)) == 1
    kit.options(THROTTLING={"OFFENDERS": "plain"})
    assert twin(limit.rules.lift, "user:12345")
    assert index(kit, limit) == []


def test_rule_that_can_not_be_listed_is_not_set(kit, twin):
    limit = Throttle("login", "1/h")
    kit.client.set(limit.key("rules"), "x")
    with pytest.raises(KeyConflict, match="rules"):
        twin(limit.rules.ban, "joe", 60)
    assert not kit.client.exists(limit.keys("joe").standing)


def test_many_rules_are_listed(kit, twin):
    limit = Throttle("login", "1/h")
    for number in range(1100):
        limit.rules.exempt(number, 100 + number)
    assert [rule.shown for rule in twin(limit.rules.list, 1050)] == [str(number) for number in range(1050)]


def test_rules_by_a_clock_of_ones_own_end_by_it(kit, twin):
    now = [1000.0]
    limit = Throttle("login", "1/h", clock=lambda: now[0])
    twin(limit.rules.ban, "joe", 60)
    assert twin(limit.hit, "joe").retry_after == 60
    now[0] = 1059
    assert twin(limit.rules.of, "joe").until.timestamp() == 1060
    assert len(twin(limit.rules.list)) == 1
    now[0] = 1060
    assert twin(limit.hit, "joe").reason == ""
    assert twin(limit.rules.of, "joe") is None
    assert twin(limit.rules.list) == []


def test_each_is_one_round_trip_and_a_list_two(kit, commands, twin):
    limit = Throttle("login", "1/h")
    actions = (
        (limit.rules.ban, "joe", 60),
        (limit.rules.exempt, "joe", 60),
        (limit.rules.override, "5/h", 60, "joe"),
        (limit.rules.of, "joe"),
        (limit.rules.lift, "joe"),
    )
    for action in actions:
        twin(*action)
    limit.rules.list()
    with commands(kit) as sent:
        for action in actions:
            twin(*action)
        twin(limit.rules.list)
    assert sent == ["EVALSHA"] * 5 + ["EVALSHA"] * 2


@pytest.mark.parametrize("seconds", [0, -1, None, True, "60", math.nan, math.inf, 366 * 86_400 + 1])
def test_rule_needs_an_end(kit, commands, seconds, twin):
    limit = Throttle("login", "1/h")
    with commands(kit) as sent:
        for method, *given in ((limit.rules.ban,), (limit.rules.exempt,), (limit.rules.override, "5/h")):
            arguments = (*given, seconds, "joe") if given else ("joe", seconds)
            with pytest.raises(InvalidValue, match=r"seconds must be from 0[.]001 to 31,622,400, which"):
                twin(method, *arguments)
    assert sent == []


def test_rule_may_last_a_year(kit, twin):
    limit = Throttle("login", "1/h")
    assert ends_in(twin(limit.rules.ban, "joe", YEAR), YEAR)
    assert ends_in(twin(limit.rules.override, "5/h", YEAR), YEAR)


@pytest.mark.parametrize(
    ("rates", "error", "message"),
    [
        ("0/s", InvalidValue, "The rate 0/s would allow nothing.*: ban the identity"),
        ("5/m; 0/h", InvalidValue, "ban the identity"),
        (None, InvalidValue, "exempt it"),
        ("5/x", InvalidRate, "Write a rate as"),
        ((5, 0.5), InvalidRate, "0.5s.*Write a rate as"),
        ((5, 1234567890.5), InvalidRate, "stands for others|Write a rate as"),
        ("60/m burst 10", InvalidValue, "does not support the burst"),
    ],
)
def test_rates_that_can_not_hold_are_refused(kit, commands, rates, error, message, twin):
    limit = Throttle("login", "1/h", strategy="fixed_window")
    with commands(kit) as sent, pytest.raises(error, match=message):
        twin(limit.rules.override, rates, 60, "joe")
    assert sent == []


def test_rates_are_read_back_as_they_were_written(kit, twin):
    limit = Throttle("login", "1/h")
    for rates in ("5/m", "15/5m; 100/d", "60/m burst 10", (7, 90), ["5/m", (100, 3600)], "1/30s", "3 per week"):
        rule = twin(limit.rules.override, rates, 60, "joe")
        assert twin(limit.rules.of, "joe").rates == rule.rates
        assert Throttle("other", rule.rates).rates == Throttle("other", rates).rates


@pytest.mark.parametrize("rates", [None, "0/s", "5/m; 0/h"])
def test_throttle_that_asks_no_server_takes_no_rules(kit, rates, twin):
    limit = Throttle("login", rates)
    for method, arguments in ((limit.rules.ban, ("joe", 60)), (limit.rules.override, ("5/m", 60))):
        with pytest.raises(InvalidValue, match="'login' gives all identities the same answer"):
            twin(method, *arguments)


@pytest.mark.parametrize("identity_hash", ["x", "x" * 23, "*" * 22, 5, b"x" * 22, hashed("joe") + "\n"])
def test_hash_is_checked(kit, identity_hash, twin):
    limit = Throttle("login", "1/h")
    for method, given in ((limit.rules.ban, {"seconds": 5}), (limit.rules.of, {}), (limit.rules.lift, {})):
        with pytest.raises(InvalidValue, match="identity_hash must be the 22 characters"):
            twin(method, identity_hash=identity_hash, **given)


def test_identity_is_named_once(kit, twin):
    limit = Throttle("login", "1/h")
    for method in (limit.rules.ban, limit.rules.exempt):
        with pytest.raises(InvalidValue, match="Give the identity"):
            twin(method, seconds=60)
    with pytest.raises(InvalidValue, match="not both"):
        twin(limit.rules.ban, "joe", 60, identity_hash=hashed("joe"))
    for identity in ("", b"joe", True):
        with pytest.raises(InvalidName, match="'login'"):
            twin(limit.rules.lift, identity)


@pytest.mark.parametrize("limit", [0, 10_001, True, "5", None])
def test_length_of_the_list_is_checked(kit, limit, twin):
    with pytest.raises(InvalidValue, match="1 to 10,000"):
        twin(Throttle("login", "1/h").rules.list, limit)


def test_any_identity_can_have_a_rule(kit, twin):
    limit = Throttle("login", "1/h")
    for identity in (42, "a b#c", "用户", "x" * 5000, "{x}*"):
        twin(limit.rules.ban, identity, 60)
        assert twin(limit.hit, identity).reason == "banned"
        assert twin(limit.rules.lift, identity)


def test_outage_is_raised(own_kit, twin):
    limit = Throttle("login", "1/h")
    own_kit.server.stop()
    for method, *arguments in (
        (limit.rules.ban, "joe", 60),
        (limit.rules.override, "5/h", 60),
        (limit.rules.lift, "joe"),
        (limit.rules.of, "joe"),
        (limit.rules.list,),
    ):
        with pytest.raises(RedisUnavailable):
            twin(method, *arguments)


def test_full_server_can_be_rid_of_rules(own_kit, twin):
    limit = Throttle("login", "1/h")
    limit.rules.exempt("joe", 60)
    own_kit.client.config_set("maxmemory", 1)
    assert twin(limit.rules.lift, "joe")
    assert limit.rules.list() == []


def test_rule_is_public():
    assert Rule is rules.Rule
