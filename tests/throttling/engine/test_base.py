"""Stored keys: everything expires, nothing grows without bounds, and foreign or broken values do no harm."""

import pytest

from redis_kit.core.errors import InvalidRate, KeyConflict
from redis_kit.throttling import Ban, Throttle, hit_all, throttle
from redis_kit.throttling.strategies import STRATEGIES
from tests.throttling.support.identity import Identity

YEAR = 366 * 86_400


@pytest.mark.parametrize("own_clock", [False, True])
def test_every_key_of_every_feature_expires(kit, own_clock):
    clock = (lambda: 1_760_000_000.0) if own_clock else None
    for strategy in STRATEGIES:
        limit = Throttle(strategy, "2/m; 3/d", strategy=strategy, ban=Ban(2, 60, (60, 300)), clock=clock)
        shadow = Throttle(f"{strategy}-shadow", "2/s", strategy=strategy, shadow=True, clock=clock)
        for _ in range(6):
            limit.hit("joe")
            shadow.hit("joe")
        limit.reserve("ann", cost=2).settle(1)
        limit.reserve("bob").refund()
        hit_all([(limit, "eve"), (shadow, "eve")])
        limit.rules.override("5/m", 1000)
        limit.rules.exempt("kim", 1000)
    stored = kit.keys()
    assert len(stored) > 50
    lasting = {key: kit.client.pttl(key) for key in stored}
    assert {key for key, left in lasting.items() if left == -1 or left > YEAR * 1000} == set()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_clock_that_is_slower_than_the_server_finds_what_was_counted(kit, strategy):
    limit = Throttle("x", [(2, 0.001)], strategy=strategy, clock=lambda: 1_760_000_000.0)
    assert limit.hit("joe", cost=2)
    assert kit.client.ttl(limit.keys("joe").state) > 86_000
    reserved = Throttle("y", [(2, 0.001)], strategy=strategy, clock=lambda: 1_760_000_000.0).reserve("joe", cost=2)
    reserved.settle(1)
    assert kit.client.ttl(reserved.throttle.keys("joe").state) > 86_000


def test_most_refused_identities_are_kept_and_their_number_is_bounded(kit):
    limit = Throttle("x", "1/d")
    for identity in range(300):
        limit.hit(identity)
        limit.hit(identity)
    kit.options(THROTTLING={"REMEMBER": 0})
    for _ in range(20):
        limit.hit("joe")
    offenders = limit.keys("joe").offenders
    assert kit.client.zcard(offenders) == 100
    assert kit.client.zrevrange(offenders, 0, 0)[0] == limit.entry("joe")
    assert 0 < kit.client.ttl(offenders) <= 86_400


def test_number_of_bans_that_are_listed_is_bounded_and_old_ones_leave(kit):
    now = 1_760_000_000.0
    limit = Throttle("x", "1/d", ban=Ban(1, 60, 600), clock=lambda: now)
    rules = limit.keys("joe").rules
    kit.client.zadd(rules, {f"old{number}": number for number in range(100)})
    kit.client.zadd(rules, {f"new{number}": (now + 1000 + number) * 1000 for number in range(10_000)})
    for _ in range(2):
        limit.hit("joe")
    assert kit.client.zcard(rules) == 10_000
    assert kit.client.zcount(rules, 0, now * 1000) == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("place", range(6))
def test_key_of_another_type_is_found_before_anything_is_written(kit, strategy, place):
    limit = Identity([(1, 3600)], strategy=strategy, ban=Ban(1, 60, 60))
    limit.ask()
    other = Throttle("other", "5/h")
    kit.client.delete(*limit.keys[1:])
    kit.client.delete(limit.keys[place])
    kit.client.rpush(limit.keys[place], "foreign")
    before = {key: kit.client.dump(key) for key in kit.keys()}
    with pytest.raises(KeyConflict):
        limit.ask()
    assert limit.throttle.hit("joe").reason == "outage"
    assert [one.allowed for one in hit_all([(other, "joe"), (limit.throttle, "joe")])] == [True, True]
    assert {key: kit.client.dump(key) for key in kit.keys()} == before


@pytest.mark.parametrize("policy", ["open", "closed"])
def test_state_of_a_wrong_type_survives_settlement_and_reset_repairs_it(kit, policy):
    limit = Throttle("x", "9/h", on_failure=policy)
    reserved = limit.reserve("joe", cost=5)
    state = limit.keys("joe").state
    kit.client.delete(state)
    kit.client.rpush(state, "foreign")
    reserved.refund()
    assert limit.hit("joe").allowed == (policy == "open")
    assert kit.client.lrange(state, 0, -1) == ["foreign"]
    assert limit.reset("joe")
    assert limit.hit("joe").reason == ""


RUBBISH = [
    b"", b"x", b"b", b"s", b"r", b"b x", b"b 1", b"s 1", b"1", b"9" * 400, b"-5 -5", b"1 2 3 4 5 6 7 8 9 10", b"nan",
    b"\xff" * 24, b"\x00" * 16, b"\x00" * 7 + b"\x7f" * 9, b"\x00" * 6 + b"\xf0\x7f", b"x" * 100_000, b"s 9 9 9 9",
    b"r gcra #5/m", b"r gcra 5#5/m", b"r gcra 1 1 1#hello", b"r fixed_window 1#1/s", b"r sliding_log 9 9 9#9/s",
    b"b " + b"9" * 400 + b" 1", b"b 1760000000000000 " + b"9" * 400, b"s " + b"9" * 400 + b" 1 1", b"x and more",
]  # fmt: skip


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("place", range(4))
def test_garbage_breaks_nothing_and_blocks_nobody_longer_than_a_period(kit, strategy, place):
    limit = Throttle("x", "3/h; 9/d", strategy=strategy, ban=Ban(2, 60, 60))
    kit.options(THROTTLING={"REMEMBER": 0})
    keys = limit.keys("joe")
    for rubbish in RUBBISH:
        kit.client.delete(*keys)
        kit.client.set(keys[place], rubbish, ex=1000)
        for method in (limit.peek, limit.hit, limit.hit, limit.hit, limit.hit):
            decision = method("joe")
            assert 0 <= decision.remaining <= 9 or decision.reason in ("exempt", "outage")
            assert 0 <= decision.retry_after <= 2 * 86_400
        limit.reserve("joe").refund()
        limit.reset("joe")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rubbish_in_the_lists_breaks_nothing(kit, strategy):
    limit = Throttle("x", "1/h", strategy=strategy, ban=Ban(1, 60, 60))
    for key in limit.keys("joe")[4:6]:
        kit.client.zadd(key, {"": "inf", "x" * 5000: "-inf", limit.entry("joe"): "-inf"})
    limit.hit("joe")
    assert limit.hit("joe").reason == "banned"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: Throttle("a", rate="5/m"),
            "Throttle() got an unexpected keyword argument 'rate'. The second argument is",
        ),
        (lambda: Throttle("a", "5/m", key="ip"), "'key'. hit() takes the identity whose calls count."),
        (lambda: Throttle("a", "5/m", shado=True), "'shado'. Did you mean 'shadow'?"),
        (lambda: Throttle("a"), "Throttle() needs a name and rates: Throttle('a', '5/m')."),
        (lambda: Throttle("10/h"), "Throttle() needs a name and rates: Throttle('name', '10/h')."),
        (
            lambda: throttle(rate="5/m"),
            "throttle() got an unexpected keyword argument 'rate'. The first argument is the rates",
        ),
        (lambda: throttle("5/m", block=True), "'block'. Refused requests are always answered by 429"),
        (lambda: throttle(), "throttle() needs the rates first: @throttle('5/m')."),
        (lambda: throttle(len), "throttle() needs the rates first: @throttle('5/m')."),
    ],
)
def test_argument_of_other_libraries_names_ours(call, text):
    with pytest.raises(TypeError) as error:
        call()
    assert text in str(error.value)


def test_rates_in_the_place_of_the_name_are_named():
    with pytest.raises(InvalidRate, match=r"^The name comes first: Throttle\('login', '5/m'\)\.$"):
        Throttle("5/m", "login")
    with pytest.raises(InvalidRate, match="The rate 'many' is not valid"):
        Throttle("login", "many")
    assert Throttle("5/m", "5/m").name == "5/m"


def test_wait_names_acquire():
    with pytest.raises(AttributeError, match="call acquire"):
        Throttle("a", "5/m").wait("me")
