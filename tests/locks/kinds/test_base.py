"""How a lease is asked for and given back, step by step and without a server."""

import asyncio
import time

import pytest
from redis.exceptions import NoScriptError

from redis_kit.core.errors import PermissionDenied, PoolExhausted, RedisUnavailable
from redis_kit.locks import Lock, LockLost, NotHeld, Semaphore
from redis_kit.locks.acquiring.wait import Turn, Wait
from redis_kit.locks.kinds.lock import ACQUIRE, EXTEND, RELEASE
from redis_kit.locks.leases.lease import mark_ended

NEXT = 1_795_000_000_000_000
TAKEN = [60_000, 1_500, b"host\t1\tthread\t\t", NEXT]
INTERRUPTIONS = [KeyboardInterrupt(), asyncio.CancelledError()]


def started(lock, *, seconds=5.0):
    steps = lock.acquire_flow(seconds)
    step = steps.send(None)
    return (steps, steps.send(step.run(None)).call) if isinstance(step, Turn) else (steps, step)


def ended(steps, reply):
    with pytest.raises(StopIteration) as caught:
        steps.send(reply)
    return caught.value.value


def token_of(step):
    end_of_lease_key, first = step.command[4].rpartition(":")[2], step.command[3 + step.command[2]]
    if end_of_lease_key != "live":  # a lock's second key
        return end_of_lease_key
    return first if isinstance(first, str) else first.split(b" ")[0].decode()


def test_free_lock_takes_one_step():
    steps, step = started(Lock("a"))
    assert step.script is ACQUIRE
    lease = ended(steps, 77)
    assert lease.fence == 77
    assert lease.token == token_of(step)


def test_each_attempt_to_acquire_has_its_own_token():
    lock = Lock("a")
    tokens = {token_of(started(lock, seconds=0.0)[1]) for _ in range(3)}
    assert len(tokens) == 3


class Asked:
    """A client whose waiting commands end as told, and which answers the questions asked meanwhile."""

    def __init__(self, ended, *answers):
        self.ended, self.answers = ended, answers
        self.commands, self.pauses = [], []

    def within(self, seconds):
        return self

    def watch(self, timeout, pause, look, waiting, behind):
        self.timeout, self.waiting, self.behind = timeout, waiting, behind
        self.answers = iter(self.answers)
        for _ in range(2):
            self.pauses.append(pause)
            if (pause := look()) is None:
                return None
        return self.ended

    def call(self, *command):
        self.commands.append(command)
        return next(self.answers)


def arguments(command):
    return dict(zip(["caller", "ttl", "member", "waiting", "refused", "woken"], command[3 + command[2] :], strict=True))


def test_waiter_has_its_question_asked_at_the_moment_when_it_is_woken():
    steps, first = started(Lock("a"))
    client = Asked(5, TAKEN, TAKEN)
    assert steps.send(TAKEN).run(client) == 5
    assert client.waiting[0] == "BLPOP"
    assert client.waiting[1].endswith("lock:a:signal")
    behind = arguments(client.behind)
    assert behind["caller"].startswith(token_of(first).encode())
    assert (behind["woken"], behind["refused"]) == (1, NEXT // 1000)
    assert [arguments(command)["woken"] for command in client.commands] == [0, 0]


def test_waiter_looks_at_the_lock_each_second_and_when_the_lease_ends():
    steps, _ = started(Lock("a"))
    client = Asked(7, [300, 0, b"h", NEXT], TAKEN)
    assert steps.send(TAKEN).run(client) == 7
    assert client.pauses == [1.0, 0.301]


def test_wait_ends_when_a_look_found_it_free():
    steps, _ = started(Lock("a"))
    client = Asked(None, 7)
    assert steps.send(TAKEN).run(client) == 7
    assert len(client.commands) == 1


def test_script_that_the_server_lost_is_sent_again_with_its_source():
    steps, first = started(Lock("a"))
    client = Asked(NoScriptError("NOSCRIPT"), TAKEN, TAKEN, 7)
    assert steps.send(TAKEN).run(client) == 7
    again = arguments(client.commands[-1])
    assert again["woken"] == 1
    assert again["caller"].startswith(token_of(first).encode())


def test_woken_waiter_that_was_refused_asks_again_to_count_as_a_waiter():
    steps, first = started(Lock("a"))
    steps.send(TAKEN)
    again = steps.send(TAKEN).call
    assert token_of(again) == token_of(first)
    assert arguments(again.command)["woken"] == 0
    assert arguments(again.command)["waiting"] > 0


def test_lease_that_was_granted_some_time_ago_is_renewed_before_it_is_used(monkeypatch):
    steps, first = started(Lock("a", timeout=1))
    steps.send(TAKEN)
    monkeypatch.setattr("redis_kit.locks.acquiring.wait.MAX_AGE", -1.0)
    renewal = steps.send(7)
    assert renewal.script is EXTEND
    assert token_of(renewal) == token_of(first)
    assert ended(steps, 1000).fence == 7


def test_lease_granted_before_the_last_request_is_extended_before_its_use():
    steps, _ = started(Lock("a"))
    steps.send(TAKEN)
    assert steps.send(NEXT - 1).script is EXTEND


def test_lease_that_was_granted_too_long_ago_is_asked_for_again(monkeypatch):
    steps, first = started(Lock("a", timeout=1))
    steps.send(TAKEN)
    monkeypatch.setattr("redis_kit.locks.acquiring.wait.MAX_AGE", -1.0)
    steps.send(7)
    again = steps.send(0).call
    assert again.script is ACQUIRE
    assert token_of(again) == token_of(first)
    assert ended(steps, 8).fence == 8


def test_nobody_waits_for_longer_than_the_caller_wants():
    steps, _ = started(Lock("a"), seconds=0.2)
    client = Asked(5, TAKEN, TAKEN)
    steps.send(TAKEN).run(client)
    assert 0.1 < client.timeout <= 0.2


def test_impatient_caller_gets_the_refusal_at_once():
    steps, step = started(Lock("a"), seconds=0.0)
    assert step.command[-1] == 0  # does not count as a waiter
    assert ended(steps, TAKEN) == TAKEN


@pytest.fixture
def pending(monkeypatch):
    """A list of the releases that are left to the background: source, token and whether its lease had begun."""
    left = []

    def add(source, token, *, ends_by=None, after=0.0):
        left.append((source, token, ends_by is not None))

    monkeypatch.setattr("redis_kit.locks.renewal.pending_releases.add", add)
    return left


ENDS = [*INTERRUPTIONS, GeneratorExit(), RedisUnavailable("no reply", indeterminate=True)]


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("lock", [Lock("a"), Semaphore("a", 2)], ids=["lock", "semaphore"])
def test_attempt_without_an_answer_is_undone_in_the_background(lock, error, pending):
    steps, step = started(lock)
    with pytest.raises(type(error)) as caught:
        steps.throw(error)
    assert caught.value is error
    assert pending == [(lock, token_of(step), False)]


@pytest.mark.parametrize("error", [RedisUnavailable("refused"), PermissionDenied("no")])
def test_attempt_that_never_left_needs_no_taking_back(error, pending):
    steps, _ = started(Lock("a"))
    with pytest.raises(type(error)):
        steps.throw(error)
    assert not pending


def test_waiter_with_a_failed_request_may_have_got_the_lease_before(pending):
    steps, step = started(lock := Lock("a"))
    steps.send(TAKEN)
    with pytest.raises(PermissionDenied):
        steps.throw(PermissionDenied("no"))
    assert pending == [(lock, token_of(step), False)]


LOST = RedisUnavailable("no reply", indeterminate=True)
PASSING = [LOST, RedisUnavailable("refused"), PoolExhausted("all in use")]


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_waiter_goes_on_after_a_failure_that_may_pass(error, pending):
    steps, first = started(Lock("a"))
    steps.send(TAKEN)
    step = steps.throw(error)
    for _ in range(3):  # it asks again, after a pause
        step = step if hasattr(step, "call") else steps.send(None)
        assert token_of(step.call) == token_of(first)
        pause = steps.throw(error)
        assert 0 <= pause.seconds <= 1
        step = steps.send(None)
    assert isinstance(steps.send(TAKEN), Wait)
    assert not pending


def test_wait_ends_with_the_failure_that_lasts_until_its_deadline(pending):
    steps, step = started(lock := Lock("a"), seconds=0.05)
    steps.send(TAKEN)
    time.sleep(0.06)
    steps.throw(LOST)
    steps.send(None)
    with pytest.raises(RedisUnavailable) as caught:
        steps.throw(LOST)
    assert caught.value is LOST
    assert pending == [(lock, token_of(step), False)]


@pytest.mark.parametrize("refusal", [TAKEN, None], ids=["refused before", "never asked"])
def test_wait_with_a_full_pool_ends_as_if_the_lock_stayed_taken(refusal, pending):
    steps, step = started(lock := Lock("a"), seconds=0.05)
    if refusal:
        steps.send(refusal)
    time.sleep(0.06)
    if refusal:
        steps.throw(PoolExhausted("all in use"))
    with pytest.raises(StopIteration) as caught:
        steps.throw(PoolExhausted("all in use"))
    assert caught.value.value == (refusal or ())
    assert pending == [(lock, token_of(step), False)]


def test_release_follows_a_lost_request_that_may_come_late(pending):
    steps, step = started(lock := Lock("a"))
    steps.send(TAKEN)
    steps.throw(LOST)
    steps.send(None)
    lease = ended(steps, 7)
    release = lock.release_flow(lease)
    release.send(None)
    assert ended(release, 1) is None
    assert pending == [(lock, token_of(step), False)]


def test_no_blocking_command_is_longer_than_half_a_minute():
    steps, _ = started(Lock("a"), seconds=1e6)
    client = Asked(5, TAKEN, TAKEN)
    steps.send(TAKEN).run(client)
    assert client.timeout <= 30
    assert float(client.waiting[2]) <= 30


def test_interrupted_wait_for_the_turn_leaves_nothing_to_take_back(pending):
    steps = Lock("a").acquire_flow(5.0)
    assert isinstance(steps.send(None), Turn)
    with pytest.raises(asyncio.CancelledError):
        steps.throw(asyncio.CancelledError())
    assert not pending


def test_abandoned_attempt_can_be_closed(pending):
    steps, _ = started(Lock("a"))
    steps.close()
    assert len(pending) == 1


@pytest.mark.parametrize("error", [*ENDS, RedisUnavailable("refused"), PermissionDenied("no")], ids=repr)
def test_lease_is_over_once_release_was_asked_for(error, pending):
    lease = ended(started(lock := Lock("a"))[0], 1)
    steps = lock.release_flow(lease)
    assert steps.send(None).script is RELEASE
    assert (lease.held, lease.over, lease.lost) == (False, True, False)
    with pytest.raises(type(error)) as caught:
        steps.throw(error)
    assert caught.value is error
    assert pending == [(lock, lease.token, True)]
    with pytest.raises(NotHeld):
        next(lock.release_flow(lease))
    with pytest.raises(NotHeld):
        next(lock.release_flow(None))


def test_release_that_was_answered_leaves_nothing_to_the_background(pending):
    lease = ended(started(lock := Lock("a"))[0], 1)
    steps = lock.release_flow(lease)
    steps.send(None)
    with pytest.raises(LockLost):
        steps.send(0)
    assert lease.lost
    assert not pending


def test_extension_that_comes_back_after_the_loss_is_none():
    lease = ended(started(lock := Lock("a"))[0], 1)
    steps = lock.extend_flow(lease, 1.0, False)
    steps.send(None)
    mark_ended(lease, lost=True)  # as at its deadline
    with pytest.raises(LockLost):
        steps.send(60_000)
    assert not lease.held


def test_shortened_lease_counts_as_shorter_even_when_the_reply_is_lost():
    lease = ended(started(lock := Lock("a", timeout=60))[0], 1)
    before = lease.deadline
    steps = lock.extend_flow(lease, 1.0, True)
    steps.send(None)
    with pytest.raises(RedisUnavailable):
        steps.throw(RedisUnavailable("no reply", indeterminate=True))
    assert lease.deadline < before - 58


def test_lease_counts_from_before_it_was_asked_for_less_the_drift():
    lease = ended(started(lock := Lock("a", timeout=100))[0], 1)
    steps = lock.extend_flow(lease, 100.0, True)
    steps.send(None)
    assert ended(steps, 100_000) is True
    from time import monotonic

    assert lease.deadline <= monotonic() + 100 * 0.99 - 0.005


def test_refused_extension_ends_the_lease():
    lease = ended(started(lock := Lock("a"))[0], 1)
    steps = lock.extend_flow(lease, 1.0, False)
    steps.send(None)
    with pytest.raises(LockLost):
        steps.send(0)
    assert not lease.held
    with pytest.raises(LockLost):
        lock.extend_flow(lease, 1.0, False).send(None)
