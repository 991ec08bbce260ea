"""Refusals that a process remembers."""

from time import monotonic

import pytest

from redis_kit.throttling import Decision, Throttle
from redis_kit.throttling.engine import memory
from redis_kit.throttling.statistics import recent
from tests.fixtures.servers import wait_for


@pytest.fixture(autouse=True)
def empty():
    memory._refusals.clear()
    yield
    memory._refusals.clear()


def refused(retry_after=10.0):
    return Decision(False, 5, 0, retry_after, 60.0)


def test_flood_of_one_identity_asks_the_server_once(kit, commands, twin):
    limit = Throttle("login", "1/h")
    with commands(kit) as sent:
        decisions = [twin(limit.hit, "joe") for _ in range(50)]
    assert sent == ["EVALSHA"] * 2
    assert [bool(one) for one in decisions] == [True] + [False] * 49
    waits = [one.retry_after for one in decisions[1:]]
    assert waits == sorted(waits, reverse=True)
    assert 3599 < waits[-1] < waits[0] <= 3600


def test_other_identities_and_costs_ask_the_server(kit):
    limit = Throttle("login", "5/h")
    assert limit.hit("joe", cost=4)
    assert not limit.hit("joe", cost=2)
    assert limit.hit("joe", cost=1)
    assert limit.hit("ann", cost=2)


def test_throttle_in_shadow_mode_leaves_the_refusals_of_another_one_alone(kit, commands):
    limit, shadow = Throttle("login", "1/h"), Throttle("login", "1/h", shadow=True)
    for _ in range(3):
        limit.hit("joe")
    assert shadow.hit("joe").reason == "shadow"
    with commands(kit) as sent:
        assert not limit.hit("joe")
    assert sent == []


def test_refusal_is_remembered_for_a_second_at_most(kit):
    memory.remember(("t", "joe", 1), refused(), asked_at=monotonic() - 0.5, seconds=1.0)
    assert memory.recall(("t", "joe", 1)).retry_after == pytest.approx(9.5, abs=0.1)
    memory.remember(("t", "joe", 1), refused(), asked_at=monotonic() - 1.0, seconds=1.0)
    assert memory.recall(("t", "joe", 1)) is None


def test_refusal_is_not_remembered_past_its_own_end():
    memory.remember(("t", "joe", 1), refused(0.2), asked_at=monotonic() - 0.2, seconds=1.0)
    assert memory.recall(("t", "joe", 1)) is None


def test_another_process_that_resets_takes_hold_within_a_second(kit):
    limit = Throttle("login", "1/h")
    limit.hit("joe")
    assert not limit.hit("joe")
    began = monotonic()
    kit.client.delete(*kit.keys())
    assert not limit.hit("joe")
    wait_for(lambda: limit.hit("joe").allowed)
    assert 0.8 < monotonic() - began < 10  # and not at the end of its hour


def test_reset_is_not_delayed_in_its_own_process(kit, twin):
    limit = Throttle("login", "2/h")
    for cost in (1, 2, 1, 1):
        twin(limit.hit, "joe", cost=cost)
    assert twin(limit.reset, "joe")
    assert twin(limit.hit, "joe", cost=2)
    assert twin(limit.reset, "joe")
    assert not twin(limit.reset, "joe")


def test_memory_can_be_switched_off(kit, commands):
    kit.options(THROTTLING={"REMEMBER": 0})
    limit = Throttle("login", "1/h")
    limit.hit("joe")
    with commands(kit) as sent:
        assert not any(limit.hit("joe") for _ in range(5))
    assert sent == ["EVALSHA"] * 5


def test_memory_is_bounded_and_forgets_the_oldest(monkeypatch):
    monkeypatch.setattr(memory, "LIMIT", 100)
    for number in range(1000):
        memory.remember(("t", str(number), 1), refused(), asked_at=monotonic(), seconds=1.0)
    assert len(memory._refusals) == 100
    assert memory.recall(("t", "999", 1)) is not None
    assert memory.recall(("t", "0", 1)) is None


def test_long_identities_are_remembered_by_their_hash(kit):
    limit = Throttle("login", "1/h")
    for _ in range(2):
        limit.hit("x" * 100_000)
    assert all(len(key[1]) <= 128 for key in memory._refusals)


def test_remembered_refusals_are_counted_with_the_next_call(kit):
    limit = Throttle("login", "1/h")
    for _ in range(10):
        limit.hit("joe")
    limit.hit("ann")
    counted = recent([limit], minutes=2)[limit]
    assert sum(minute.allowed for minute in counted) == 2
    assert sum(minute.refused for minute in counted) == 9


def test_settings_that_change_forget_all(kit):
    limit = Throttle("login", "1/h")
    limit.hit("joe")
    assert not limit.hit("joe")
    kit.options(PREFIX=f"{kit.prefix}-other")
    assert limit.hit("joe")
