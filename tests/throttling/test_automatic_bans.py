"""Identities that are refused too often are banned for some time."""

from time import monotonic, sleep

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.throttling import Ban, Throttle, hit_all
from redis_kit.throttling.engine import decide, memory
from redis_kit.throttling.strategies import STRATEGIES

DAY = 86_400


class Clock:
    now = 1_760_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def refuse(limit, times):
    """Let a caller be refused so many times, and return the last decision."""
    answers = []
    while len(answers) < times:
        decision = limit.hit("joe")
        answers += [] if decision else [decision]
    return answers[-1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_third_refusal_within_a_minute_bans_for_as_long_as_it_says(kit, clock, strategy):
    limit = Throttle("x", "2/h", strategy=strategy, ban=Ban(3, 60, 7200), clock=clock)
    assert refuse(limit, 2).reason == ""
    banned = refuse(limit, 1)
    assert (banned.allowed, banned.reason, banned.retry_after) == (False, "banned", 7200)
    clock.now += 7199.999
    assert limit.hit("joe").reason == limit.peek("joe").reason == "banned"
    assert limit.hit("ann")
    clock.now += 0.001
    assert limit.hit("joe")


def test_each_ban_is_longer_and_the_last_length_repeats(kit, clock):
    limit = Throttle("x", "1/s", ban=Ban(2, 60, (60, 300, 3600)), clock=clock)
    lengths = []
    for _ in range(5):
        banned = refuse(limit, 2)
        assert banned.reason == "banned"
        lengths.append(banned.retry_after)
        clock.now += banned.retry_after
    assert lengths == [60, 300, 3600, 3600, 3600]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("override", [None, "1/h", "9/m"])
def test_caller_that_waits_as_told_is_never_banned_again(kit, clock, strategy, together, override):
    limit = Throttle("x", "3/m", strategy=strategy, ban=Ban(2, 60, (2, 6)), clock=clock)
    other = Throttle("y", "9999/s", clock=clock)
    if override:
        limit.rules.override(override, 10 * DAY)

    def hit():
        return hit_all([(limit, "joe"), (other, "joe")])[0] if together else limit.hit("joe")

    while hit().reason != "banned":
        pass
    for _ in range(4):
        clock.now += 0.5
        banned = hit()
        assert banned.reason == "banned"
        assert banned.retry_after == limit.peek("joe").retry_after > 2  # the rate refuses for longer than the ban
        clock.now += banned.retry_after - 0.001
        assert not limit.peek("joe")
        clock.now += 0.001
        assert hit()
        while hit().reason != "banned":
            pass


def test_remembered_ban_ends_no_sooner_than_the_rate_allows(kit, monkeypatch):
    monkeypatch.setattr(decide, "monotonic", lambda: 100.0)
    monkeypatch.setattr(memory, "monotonic", lambda: 100.5)
    limit = Throttle("x", "3/m", ban=Ban(2, 60, (2, 6)))
    asked, remembered = refuse(limit, 2), limit.hit("joe")
    assert (asked.reason, remembered.reason) == ("banned", "banned")
    assert 20 >= asked.retry_after > 10
    assert remembered.retry_after == asked.retry_after - 0.5


def test_refusals_while_banned_do_not_make_it_longer(kit, clock):
    limit = Throttle("x", "1/m", ban=Ban(2, 60, 600), clock=clock)
    refuse(limit, 2)
    clock.now += 300
    assert refuse(limit, 50).retry_after == 300


def test_refusals_further_apart_than_the_time_given_do_not_add_up(kit, clock):
    limit = Throttle("x", "1/d", ban=Ban(3, 60, 600), clock=clock)
    for _ in range(6):
        assert refuse(limit, 2).reason == ""
        clock.now += 60
    refuse(limit, 2)
    clock.now += 59.999
    assert refuse(limit, 1).reason == "banned"


def test_history_of_an_identity_is_forgotten_a_day_after_its_last_ban(kit):
    limit = Throttle("x", "1/d", ban=Ban(2, 60, (60, 300)))
    standing = limit.keys("joe").standing
    kit.options(THROTTLING={"REMEMBER": 0})
    refuse(limit, 1)
    assert 59_000 < kit.client.pttl(standing) <= 60_000
    refuse(limit, 1)
    assert (DAY + 59) * 1000 < kit.client.pttl(standing) <= (DAY + 60) * 1000
    assert 0 < kit.client.ttl(limit.keys("joe").rules) <= 366 * DAY


@pytest.mark.parametrize("before", [1, 2])
def test_reset_lifts_a_ban_and_forgets_refusals(kit, twin, clock, before):
    limit = Throttle("x", "1/m", ban=Ban(2, 60, (60, 300)), clock=clock)
    refuse(limit, before)
    assert twin(limit.reset, "joe")
    assert twin(limit.hit, "joe")
    assert kit.client.zcard(limit.keys("joe").rules) == 0
    assert refuse(limit, 1).reason == ""
    assert refuse(limit, 1).retry_after == 60


def test_refusals_from_memory_count_with_the_next_one_from_the_server(kit):
    limit = Throttle("x", "1/d", ban=Ban(10, 60, 600))
    refuse(limit, 9)
    limit.hit("ann")
    kit.options(THROTTLING={"REMEMBER": 0})  # which forgets what was remembered, and how often it was given
    refuse(limit, 1)
    assert limit.hit("joe").reason == ""


def test_refusals_that_a_process_gave_by_itself_lead_to_a_ban(kit):
    limit = Throttle("x", [(1, 0.05)], ban=Ban(20, 600, 600))
    asked, admitted, banned = 0, 0, False
    end = monotonic() + 10
    while not banned:
        assert monotonic() < end
        decision = limit.hit("joe")
        asked, admitted, banned = asked + 1, admitted + decision.allowed, decision.reason == "banned"
    assert asked - admitted >= 20
    assert admitted < 20  # though a call passed between each remembered refusal and the next


def test_old_refusals_from_memory_do_not_count_towards_a_ban(kit):
    limit = Throttle("x", [(1, 0.02)], ban=Ban(20, 0.001, 600))
    end = monotonic() + 0.5
    while monotonic() < end:
        assert limit.hit("joe").reason == ""
        sleep(0.0004)  # so twenty of them take longer than the time given, however busy the machine is


def test_peek_imposes_no_ban(kit, clock):
    limit = Throttle("x", "1/h", ban=Ban(1, 60, 600), clock=clock)
    limit.hit("joe")
    assert [limit.peek("joe").reason for _ in range(3)] == [""] * 3
    assert limit.hit("joe").reason == "banned"


def test_banned_identity_prevents_counting_by_the_other_throttles(kit, clock):
    limit, other = Throttle("x", "1/h", ban=Ban(1, 60, 600), clock=clock), Throttle("y", "9/h", clock=clock)
    refuse(limit, 1)
    first, second = hit_all([(limit, "joe"), (other, "joe")])
    assert (first.reason, second.allowed, other.peek("joe").remaining) == ("banned", True, 9)


def test_shadow_mode_bans_nobody(kit, clock):
    limit = Throttle("x", "1/h", ban=Ban(1, 60, 600), shadow=True, clock=clock)
    assert {limit.hit("joe").reason for _ in range(5)} == {"", "shadow"}


def test_clock_set_back_extends_a_ban_by_the_jump_at_most(kit, clock):
    limit = Throttle("x", "1/m", ban=Ban(1, 60, 600), clock=clock)
    refuse(limit, 1)
    clock.now -= 100
    assert limit.hit("joe").retry_after == 700


@pytest.mark.parametrize(
    "arguments",
    [
        (0, 60, 60),
        (1.5, 60, 60),
        (True, 60, 60),
        (1, 0, 60),
        (1, 60, ()),
        (1, 60, (1,) * 9),
        (1, 60, 31 * DAY),
        (1, "60", 60),
    ],
)
def test_arguments_are_checked(arguments):
    with pytest.raises(InvalidValue):
        Ban(*arguments)
    with pytest.raises(InvalidValue, match="Ban"):
        Throttle("x", "1/h", ban=arguments)


@pytest.mark.parametrize("seconds", [(), (60,) * 9])
def test_number_of_lengths_has_a_message_of_its_own(seconds):
    with pytest.raises(InvalidValue, match=f"sequence of 1 to 8, not of {len(seconds)}"):
        Ban(1, 600, seconds)


@pytest.mark.parametrize("after", [1, 2, 3, 5])
def test_refusals_from_memory_suffice_for_a_ban(kit, trips, after):
    limit = Throttle("login", "1/h", ban=Ban(after, 600, 60))
    limit.peek("ann")  # loads the script
    trips.clear()
    limit.hit("joe")
    reasons = [limit.hit("joe").reason for _ in range(after + 3)]
    assert reasons == [""] * (after - 1) + ["banned"] * 4
    assert len(trips) <= 3  # the first call, the first refusal and the ban; others are answered from memory


def test_refusals_of_hit_all_from_memory_suffice_for_a_ban(kit):
    limits = [Throttle("login", "1/h", ban=Ban(3, 600, 60)), Throttle("site", "99/h")]
    calls = [(limit, "joe") for limit in limits]
    hit_all(calls)
    for _ in range(3):
        hit_all(calls)
    assert limits[0].peek("joe").reason == "banned"
