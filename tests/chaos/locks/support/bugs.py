"""Bugs to put into a process on purpose: those that locks of this kind have had. The checkers must find each.

A bug that changes a script names the text that it changes, and fails where that is not there any more.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable
from typing import Any

from redis_kit.core import scripts
from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.steps import Call
from redis_kit.locks import Lock, Semaphore
from redis_kit.locks.acquiring.wait import Attempt
from redis_kit.locks.fencing.queryset import Fenced
from redis_kit.locks.kinds import base, semaphore
from redis_kit.locks.kinds.read_write_lock import WriteLock
from redis_kit.locks.leases.lease import mark_ended
from redis_kit.locks.renewal import pending_releases, renewer

NOT_MINE = "if not held or string.find(held, ARGV[1], 1, true) ~= 1 then"
Sow = Callable[[Any, str, Any], None]
BUGS: dict[str, Callable[[Sow], None]] = {}


class Seeds:
    """The bug that is in this process."""

    def __init__(self) -> None:
        self._sound: list[tuple[Any, str, Any]] = []

    def sow(self, bug: str) -> None:
        """Take out the bug that was put in before, and put this one in; the empty one is none."""
        while self._sound:
            setattr(*self._sound.pop())
        if bug:
            BUGS[bug](self._set)

    def _set(self, owner: Any, name: str, value: Any) -> None:
        self._sound.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)


def _bug(function: Callable[[Sow], None]) -> Callable[[Sow], None]:
    BUGS[function.__name__] = function
    return function


def _rewrite(sow: Sow, name: str, old: str, new: str) -> None:
    script = scripts.load("redis_kit.locks", name)
    if old not in script.source:
        raise ValueError(f"{name}.lua has no {old!r} any more")
    source = script.source.replace(old, new)
    sow(script, "source", source)
    sow(script, "digest", hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


@_bug
def release_of_any_holder(sow: Sow) -> None:
    """Release without a look at the token."""
    _rewrite(sow, "release", NOT_MINE, "if not held then")


@_bug
def release_by_del(sow: Sow) -> None:
    """Delete the key."""
    sow(Lock, "release_step", lambda self, token: Call("DEL", self.keys().holder))


@_bug
def extension_of_any_holder(sow: Sow) -> None:
    """Extend without a look at the token."""
    _rewrite(sow, "extend", NOT_MINE, "if not held then")


@_bug
def extension_takes_anew(sow: Sow) -> None:
    """Extend a lease that has ended, as if it were free to take."""
    taken = 'if not held then redis.call("SET", KEYS[1], ARGV[1] .. " \\n1 1 1") elseif false then'
    _rewrite(sow, "extend", NOT_MINE, taken)


@_bug
def slot_taken_anew(sow: Sow) -> None:
    """Refresh a slot that was lost."""
    _rewrite(sow, "extend_slot", 'if ends <= now or redis.call("EXISTS", KEYS[2]) == 0 then', "if false then")


@_bug
def blind_retry(sow: Sow) -> None:
    """Repeat an attempt whose reply was lost as if it were a new one, as a client that retries by itself does."""
    acquire = Lock.acquire

    def retried(self: Lock, **options: Any) -> Any:
        try:
            return acquire(self, **options)
        except RedisUnavailable:
            return acquire(self, **options)

    sow(Lock, "acquire", retried)
    sow(pending_releases, "add", lambda *arguments, **options: None)


@_bug
def lease_without_end(sow: Sow) -> None:
    """Take a lock with no expiry on its key."""
    _rewrite(sow, "acquire", ', "PX", ttl)', ")")


@_bug
def fence_that_forgets(sow: Sow) -> None:
    """Count fences in a key alone, which can get lost."""
    _rewrite(sow, "acquire", "local fence, woken,", "micros = 1 local fence, woken,")


@_bug
def deadline_from_the_reply(sow: Sow) -> None:
    """Count on the lease from when the reply came."""
    sow(base, "safe_deadline", lambda sent_at, timeout: time.monotonic() + timeout * 0.99 - 0.005)


@_bug
def deadline_without_a_margin(sow: Sow) -> None:
    """Trust that the clocks of process and server run alike."""
    sow(base, "safe_deadline", lambda sent_at, timeout: sent_at + timeout)


@_bug
def answer_of_long_ago(sow: Sow) -> None:
    """Count a lease that was granted during a wait from the last look, though it may have been granted before that."""
    sow(Attempt, "is_fresh", lambda self, fence: True)


@_bug
def clock_of_the_client(sow: Sow) -> None:
    """Take time from a client, whose clock is an hour ahead."""
    _rewrite(
        sow, "acquire_slot", 'local clock = redis.call("TIME")', f"local clock = {{ {time.time() + 3600:.0f}, 0 }}"
    )


@_bug
def count_then_add(sow: Sow) -> None:
    """Count the holders of a semaphore in one command, and become one of them in another."""
    sow(Semaphore, "acquire_step", lambda self, attempt: _TwoCommands(self, attempt))


class _TwoCommands:
    def __init__(self, source: Semaphore, attempt: Attempt) -> None:
        self.source, self.attempt = source, attempt
        self.holders = source.keys().holders

    def run(self, client: Any) -> Any:
        seconds, micros = map(int, client.call("TIME"))
        now = seconds * 1000 + micros // 1000
        count = client.call("ZCOUNT", self.holders, now, "+inf")
        if count >= self.source.limit:
            return semaphore.SlotRefusal(1000, count, self.source.limit, 1, 1000, 0, b"", now)
        client.call("INCR", "counted")
        deadline = time.monotonic() + 2
        while int(client.call("GET", "counted")) < 3 and time.monotonic() < deadline:  # all three workers count first
            time.sleep(0.01)
        token, limit = self.attempt.token, self.source.limit
        client.call("ZADD", self.holders, now + self.attempt.ttl_ms, f"{token} {limit}")
        client.call("SET", f"{self.source.keys().lease}:{token}", f"{seconds} {micros} {limit} 1 0 ")
        return seconds * 1_000_000 + micros


@_bug
def weight_that_does_not_count(sow: Sow) -> None:
    """Let each lease of a semaphore use one slot, whatever its weight."""
    arguments = semaphore.SlotLock._slots
    sow(semaphore.SlotLock, "_slots", lambda self, token: arguments(self, token)[: 2 * len(self.levels)])


@_bug
def writer_beside_readers(sow: Sow) -> None:
    """Let a writer use one slot, as a reader does."""
    sow(WriteLock, "weight", 1)


@_bug
def write_without_a_fence(sow: Sow) -> None:
    """Change a row whatever its fence."""
    sow(Fenced, "update", lambda self, **values: self._rows.update(**values, fence=self._lease.fence))


@_bug
def barging(sow: Sow) -> None:
    """Give free slots to any caller, and not to the waiters in the queue."""
    _rewrite(sow, "acquire_fair_slot", "used + weight_of_first(before) + weight > most", "used + weight > most")


@_bug
def clean_up_in_the_cancelled_task(sow: Sow) -> None:
    """Take back what was cancelled in the task itself, where the next cancellation ends that too."""
    kept: list[tuple[Any, str]] = []

    def add(source: Any, token: str, **when: Any) -> None:
        kept.append((source, token))

    def cleaned(function: Callable[..., Any]) -> Callable[..., Any]:
        def steps(*arguments: Any) -> Any:
            try:
                return (yield from function(*arguments))
            except asyncio.CancelledError:
                while kept:
                    source, token = kept.pop()
                    yield source.release_step(token)
                raise

        return steps

    sow(pending_releases, "add", add)
    for name in ("acquire_flow", "end_flow"):
        sow(base.BaseLock, name, cleaned(getattr(base.BaseLock, name)))


@_bug
def release_that_waits_for_the_reply(sow: Sow) -> None:
    """Let a lease be over when the server has said so, and not when its holder has: the release is not tried again."""

    def let_go(self: Any, lease: Any) -> Any:
        renewer.stop(lease)
        given_back = yield self.release_step(lease.token)
        mark_ended(lease, lost=not given_back)
        self.owned_leases.remove(lease)

    sow(base.BaseLock, "end_flow", let_go)


@_bug
def release_that_is_sent_once(sow: Sow) -> None:
    """Let a release that got lost be lost."""
    sow(pending_releases.PendingReleases, "add", lambda self, entry: None)
