"""The checkers of histories: each finds what it is for, in a history written by hand, and nothing in a clean one."""

from typing import Any

import pytest

from tests.chaos.locks.support import checkers
from tests.chaos.locks.support.history import Event, HistoryFile, read

MS = 1_000_000  # ns
LEASE = 1000  # ms
EXTENSION = [("extending", 510), ("extended", 511)]


def event(what: str, worker: str, at: float, *, server: float = 0, until: float = 0, **facts: Any) -> Event:
    """Return an event at a time in ms, which is the server's time too."""
    times = {"at": int(at * MS), "server": int(server * 1000), "until": int(until * MS), "ttl": LEASE * MS}
    return Event(**{"what": what, "worker": worker, "turn": 1, "name": "a", **times, **facts})


def hold(worker: str, taken: float, end: float, *, asked: float | None = None, said: str = "let_go", **facts: Any):
    """Return the events of a lease that was given back: the fence is the server's clock, as it should be."""
    asked = taken - 1 if asked is None else asked
    facts = {"fence": int(taken - 0.5) * 1000, **facts}
    until = facts.pop("until", asked + LEASE * 0.99 - 5)
    steps = [("asked", asked, 0), ("taken", taken, 0), ("letting", end, end - 0.5), (said, end + 1, 0)]
    return [event(what, worker, at, server=server, until=until, **facts) for what, at, server in steps]


def found(check: Any, *parts: list[Event]) -> list[str]:
    """Return what a checker finds in the events of all parts, in their order in time."""
    return check(sorted((one for part in parts for one in part), key=lambda one: one.at))


@pytest.mark.parametrize("check", [*checkers.ALWAYS, checkers.refused_for_nothing], ids=lambda check: check.__name__)
def test_clean_history_passes(check):
    waited = hold("c", 300, 350, asked=20)
    refused = [event("asked", "d", 310), event("refused", "d", 340)]
    writes = [event("kept", "a", 20, fence=9_000, turn=1), event("kept", "b", 120, fence=99_000, turn=2)]
    assert not found(check, hold("a", 10, 100), hold("b", 110, 200), waited, refused, writes)


@pytest.mark.parametrize("check", [checkers.overlaps, checkers.overlaps_on_the_server])
def test_two_holders_of_a_lock_are_found(check):
    assert len(found(check, hold("a", 10, 100), hold("b", 50, 200))) == 1


def test_holder_that_was_killed_counts_until_its_deadline():
    killed = hold("a", 10, 100)[:2]
    assert not found(checkers.overlaps, killed, hold("b", 1010, 1100))
    assert found(checkers.overlaps, killed, hold("b", 900, 950))


def test_lease_ends_on_the_server_with_its_last_whole_millisecond():
    killed = hold("a", 10, 100, fence=9_999)[:2]
    assert not found(checkers.overlaps_on_the_server, killed, hold("b", 1010, 1100, fence=1_009_000))
    assert found(checkers.overlaps_on_the_server, killed, hold("b", 1010, 1100, fence=1_008_999))


def test_holder_that_extends_counts_until_its_new_deadline():
    extended = [event(what, "a", at, server=at, until=1500, fence=9_000) for what, at in EXTENSION]
    assert not found(checkers.overlaps, hold("a", 10, 100)[:2], extended, hold("b", 1510, 1600))
    assert found(checkers.overlaps, hold("a", 10, 100)[:2], extended, hold("b", 1490, 1600))
    assert found(checkers.overlaps_on_the_server, hold("a", 10, 100)[:2], extended, hold("b", 1490, 1600))


def test_lease_whose_reply_came_after_its_end_was_never_held():
    late = hold("a", 1200, 1300, asked=10, fence=11_000)
    assert not found(checkers.overlaps, late, hold("b", 1100, 1250))


def test_semaphore_over_its_limit_is_found():
    slots = [hold("a", 10, 100, limit=2), hold("b", 20, 100, limit=2)]
    assert not found(checkers.overlaps, *slots, hold("c", 110, 200, limit=2))
    assert found(checkers.overlaps, *slots, hold("c", 90, 200, limit=2))


def test_weights_and_the_smallest_limit_count():
    assert not found(checkers.overlaps, hold("a", 10, 100, limit=5, weight=3), hold("b", 20, 90, limit=5, weight=2))
    assert found(checkers.overlaps, hold("a", 10, 100, limit=5, weight=3), hold("b", 20, 90, limit=5, weight=3))
    assert found(checkers.overlaps, hold("a", 10, 100, limit=5, weight=3), hold("b", 20, 90, limit=4, weight=2))


def test_writer_beside_a_reader_is_found():
    readers = [hold("a", 10, 100, limit=1000), hold("b", 20, 90, limit=1000)]
    assert not found(checkers.overlaps, *readers, hold("c", 110, 120, limit=1000, weight=1000))
    assert found(checkers.overlaps, *readers, hold("c", 95, 120, limit=1000, weight=1000))


def test_different_locks_do_not_meet():
    assert not found(checkers.overlaps, hold("a", 10, 100), hold("b", 50, 200, name="b"))


def test_fence_that_falls_is_found():
    assert found(checkers.fences, hold("a", 10, 100, fence=5), hold("b", 110, 200, fence=4))


def test_fence_that_falls_is_found_although_both_asked_at_the_same_time():
    assert found(checkers.fences, hold("a", 10, 100, fence=5), hold("b", 110, 200, asked=5, fence=4))


def test_fence_that_is_given_twice_is_found():
    slots = [hold("a", 10, 100, limit=2, fence=5), hold("b", 10, 90, limit=2, fence=5)]
    assert found(checkers.fences, *slots)


def test_slots_that_were_asked_for_together_may_have_fences_in_any_order():
    assert not found(
        checkers.fences, hold("a", 10, 100, limit=2, fence=5), hold("b", 11, 90, limit=2, asked=2, fence=4)
    )


@pytest.mark.parametrize("said", ["let_go", "lost"])
def test_release_that_succeeds_after_another_one_has_come_is_found(said):
    late = hold("a", 10, 1500, said=said)
    assert bool(found(checkers.outlived, late, hold("b", 1100, 1200))) == (said == "let_go")


def test_deadline_without_a_margin_is_found():
    assert found(checkers.margins, hold("a", 10, 100, until=9 + LEASE, once=True))


def test_deadline_that_counts_from_the_reply_is_found():
    late = hold("a", 310, 400, asked=10, fence=11_000, until=310 + LEASE * 0.99 - 5, once=True)
    assert found(checkers.margins, late)


def test_stale_write_is_found():
    writes = [event("kept", "b", 120, fence=99_000, turn=1), event("kept", "a", 130, fence=9_000, turn=2)]
    assert found(checkers.stale_writes, writes)


def test_newcomer_who_is_served_before_one_in_the_queue_is_found():
    first, newcomer = hold("a", 1500, 1600, asked=10, fair=True), hold("b", 1000, 1100, asked=900, fair=True)
    assert found(checkers.barging, first, newcomer)
    assert not found(checkers.barging, [event("fault", "kill", 950, until=1000)], first, newcomer)


def test_order_counts_for_fair_locks_alone():
    assert not found(checkers.barging, hold("a", 1500, 1600, asked=10), hold("b", 1000, 1100, asked=900))


def test_those_who_come_together_may_be_served_in_any_order():
    assert not found(
        checkers.barging, hold("a", 1500, 1600, asked=10, fair=True), hold("b", 1000, 1100, asked=200, fair=True)
    )


def test_waiters_that_fit_side_by_side_may_be_served_in_any_order():
    both = {"fair": True, "limit": 2}
    first, second = hold("a", 1050, 1200, asked=10, **both), hold("b", 1000, 1100, asked=900, **both)
    assert not found(checkers.barging, first, second)
    assert found(checkers.barging, hold("a", 1500, 1600, asked=10, **both), second)
    alone = both | {"weight": 2}
    assert found(checkers.barging, hold("a", 1050, 1200, asked=10, **alone), second)


def test_refusal_of_a_free_lock_is_found():
    refused = [event("asked", "a", 3000), event("refused", "a", 3001)]
    assert found(checkers.refused_for_nothing, hold("b", 10, 100), refused)
    assert not found(checkers.refused_for_nothing, hold("b", 2900, 3100), refused)


def test_refusal_is_right_while_a_failed_attempt_may_have_taken_the_lock():
    failed = [event("asked", "b", 2500), event("failed", "b", 2600)]
    assert not found(checkers.refused_for_nothing, failed, [event("asked", "a", 3000), event("refused", "a", 3001)])
    assert found(checkers.refused_for_nothing, failed, [event("asked", "a", 3700), event("refused", "a", 3701)])


def test_journal_is_read_in_the_order_of_time(tmp_path):
    journals = [HistoryFile(tmp_path / f"{name}.history") for name in "ab"]
    for number in range(4):
        journals[number % 2].note("asked", "ab"[number % 2], turn=number)
    assert [one.turn for one in read(tmp_path)] == [0, 1, 2, 3]
    for history_file in journals:
        history_file.close()
