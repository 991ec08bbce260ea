"""Waiting without polling: blocked on a list of wake-ups, with one request for the lease per second.

In each process, only the first caller that wants a name talks to the server, so a thousand tasks that want one lock
need one connection. A caller that has begun to wait goes on after a failure that may pass, such as a lost connection: a
token makes it safe to repeat a request.
"""

import asyncio
import math
import os
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from secrets import token_hex
from time import monotonic
from typing import Any, cast
from weakref import WeakKeyDictionary

from redis_kit.core.client.backoff import full_jitter
from redis_kit.core.errors import PoolExhausted, RedisFailure, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Command, Sleep
from redis_kit.locks.leases.lease import ExtendMode, LeaseSource
from redis_kit.locks.renewal import pending_releases

INTERVAL = 1.0  # seconds between two requests: the cost of a lost wake-up
LONGEST = 30.0  # seconds of one blocking command: proxies cut connections that are silent for longer
FIRST_PAUSE = 0.1  # seconds after a failure, at most; doubled after each further one, up to INTERVAL
LAST_WAIT = 0.05  # seconds that the last request waits for a connection
PASSING = (RedisUnavailable, PoolExhausted)  # failures that may pass
WAITER_TTL = 2500  # ms that a waiter counts as one after each request
MAX_AGE = 0.1  # share of a lease's timeout that may be over when its holder learns of the lease

Refusal = Sequence[Any]


class LocalQueue:
    """The callers of this process, or of one event loop, that want one name, in the order in which they came."""

    def __init__(self) -> None:
        self.turns: dict[str, Any] = {}  # token -> the event that is set when its turn comes; None for the first
        self.reported_at = -math.inf  # when the server was told that all of them wait

    @cached_property
    def id(self) -> str:
        """Return an ID that differs from those of other processes."""
        return token_hex(8)

    def tokens(self) -> list[str]:
        """Return the tokens of the callers in the queue."""
        with _guard:
            return list(self.turns)


LocalQueues = dict[str, LocalQueue]


class Turn:
    """A step: wait for the turn to request a key, until a moment of the monotonic clock; True if it has come.

    With ``check`` it raises RedisUnavailable rather than wait while the circuit breaker is open.
    """

    __slots__ = ("_check", "_event", "_queues", "key", "queue", "token", "until")

    queue: LocalQueue

    def __init__(self, key: str, token: str, *, until: float, check: bool = False) -> None:
        self.key, self.token, self.until, self._check = key, token, until, check
        self._event: Any = None
        self._queues: LocalQueues | None = None

    def run(self, client: Any) -> bool:
        """Wait in this thread. No round trip."""
        if self._queues is None:
            self._join(_of_threads, threading.Event)
        if self._event is None:
            return True
        if self._check:
            client.check()
        return bool(self._event.wait(self._remaining()))

    async def arun(self, client: Any) -> bool:
        """See run()."""
        if self._queues is None:
            self._join(_of_tasks.setdefault(asyncio.get_running_loop(), {}), asyncio.Event)
        if self._event is None or self._event.is_set():
            return True
        if self._check:
            client.check()
        try:
            async with asyncio.timeout(self._remaining()):
                return bool(await self._event.wait())
        except TimeoutError:
            return False

    @property
    def has_waited(self) -> bool:
        """Tell whether others came before."""
        return self._event is not None

    def end(self) -> None:
        """Give the turn to the next caller."""
        if self._queues is None:
            return
        with _guard:
            queue = self._queues.get(self.key, self.queue)
            queue.turns.pop(self.token, None)
            if event := next(iter(queue.turns.values()), None):
                event.set()
            elif not queue.turns:
                self._queues.pop(self.key, None)
        self._queues = None

    __del__ = end  # after an interruption

    def _join(self, queues: LocalQueues, make: Callable[[], Any]) -> None:
        with _guard:
            self.queue = queues.get(self.key) or LocalQueue()
            self._queues = queues
            queues[self.key] = self.queue
            self._event = make() if self.queue.turns else None
            self.queue.turns[self.token] = self._event

    def _remaining(self) -> float | None:
        return None if self.until == math.inf else max(self.until - monotonic(), 0)


_of_threads: LocalQueues = {}
_of_tasks: WeakKeyDictionary[asyncio.AbstractEventLoop, LocalQueues] = WeakKeyDictionary()
_guard = threading.RLock()


def _forget() -> None:
    global _guard
    _guard = threading.RLock()
    _of_threads.clear()


os.register_at_fork(after_in_child=_forget)


class Attempt:
    """One attempt to acquire a lease. It waits until ``deadline``, a moment of the monotonic clock."""

    def __init__(self, timeout: float, *, wait: float) -> None:
        self.token, self.timeout, self.ttl_ms = os.urandom(16).hex(), timeout, round(timeout * 1000)
        self.began_at = self.sent_at = monotonic()
        self.deadline, self.blocking = self.sent_at + wait, wait > 0
        self.waiting_since = 0  # ms on the server's clock; 0 if the server has not refused it
        self.woken, self.wake_up_list, self._next_fence = 0, "", 0
        self.sent, self.refusal = False, cast(Refusal, ())
        self.late_until = 0.0  # until when a request whose reply was lost may still reach the server
        self.local_queue: LocalQueue | None = None

    @property
    def remaining(self) -> float:
        """Return for how many seconds it goes on waiting."""
        return self.deadline - monotonic()

    @property
    def waiter_ttl(self) -> int:
        """Return for how many ms the caller counts as a waiter if it is refused; 0 if it gives up then."""
        return WAITER_TTL if self.sent_at < self.deadline else 0

    def is_fresh(self, fence: int) -> bool:
        """Tell whether a lease that was granted during a wait was granted after ``sent_at``, and not long after it.

        It may have been granted before the last request and have ended since; then its fence is older than the request.
        """
        return fence >= self._next_fence and monotonic() - self.sent_at <= self.timeout * MAX_AGE

    def request(self, source: LeaseSource, *, woken: bool = False) -> ScriptCall:
        """Return the step that asks for the lease now or, if ``woken``, as soon as the wait before it ends."""
        self.sent_at, self.woken, self.sent = monotonic(), int(woken), True
        return source.acquire_step(self)

    def may_hold(self, error: BaseException) -> bool:
        """Tell whether the server may have granted the lease, or may still grant it, though an error ended the attempt.

        An error in the server's reply means that it did not, unless another request was queued behind a blocked one, or
        was lost before.
        """
        if self.sent and not (self.waiting_since or self.late_until) and isinstance(error, RedisFailure):
            return isinstance(error, RedisUnavailable) and error.indeterminate
        return self.sent

    def note_refusal(self, refusal: Refusal) -> None:
        """Note the fence that the next lease gets, which is the server's clock, and since when the caller waits.

        Before the first request it may have waited for other callers of this process.
        """
        if refusal:
            self.refusal, self._next_fence = refusal, refusal[-1]
            before = int((self.sent_at - self.began_at) * 1000)
            self.waiting_since = self.waiting_since or refusal[-1] // 1000 - before

    def note_failure(self, error: RedisFailure) -> None:
        """Note a failure after which the caller goes on: the request may have reached the server, or still reach it."""
        if isinstance(error, RedisUnavailable) and error.indeterminate:
            self.late_until = monotonic() + pending_releases.IN_TRANSIT


def acquire_blocking(source: LeaseSource, attempt: Attempt) -> Flow[Any]:
    """Request the lease until it is granted or the attempt's deadline has passed.

    Return the fence, a refusal, or () if neither the caller's turn in this process nor a connection came. After an
    error, ``attempt.may_hold()`` tells whether the server may have granted the lease.
    """
    try:
        reply = yield from (_in_queue if source.fair else _in_turn)(source, attempt)
    except PoolExhausted:
        if attempt.sent:
            pending_releases.add(source, attempt.token)
        return attempt.refusal
    if not isinstance(reply, int) and attempt.late_until:
        pending_releases.add(source, attempt.token, after=attempt.late_until - monotonic())
    return reply


def _in_turn(source: LeaseSource, attempt: Attempt) -> Flow[Any]:
    turn = Turn(source.local_key, attempt.token, until=attempt.deadline, check=True)
    try:
        if not (yield turn):
            return ()
        reply = yield from _request(source, attempt, has_waited=turn.has_waited)
        return (yield from _wait(source, attempt, reply))
    finally:
        turn.end()


def _in_queue(source: LeaseSource, attempt: Attempt) -> Flow[Any]:
    """Get a ticket from the server at once, but listen for it only as the first caller of this process.

    Tickets are requested one after another, so that the local queue is in the order of the server's queue.
    """
    counter = Turn(f"{source.local_key} tickets", attempt.token, until=attempt.deadline, check=True)
    turn = Turn(source.local_key, attempt.token, until=0)
    try:
        try:
            if not (yield counter):
                return ()
            is_first = yield turn
            attempt.local_queue = turn.queue
            attempt.wake_up_list = source.key(f"{source.member}:wake:{turn.queue.id}")
            reply = yield from _request(source, attempt, has_waited=False)
        finally:
            counter.end()
        if not isinstance(reply, int) and not is_first:
            turn.until = attempt.deadline
            yield turn
            attempt.note_refusal(reply)
            reply = yield from _request(source, attempt)  # after the deadline this gives the ticket up
        return (yield from _wait(source, attempt, reply))
    finally:
        turn.end()


def _wait(source: LeaseSource, attempt: Attempt, reply: Any) -> Flow[Any]:
    # A caller that was refused before its deadline counts as a waiter, so another request has to follow.
    while not isinstance(reply, int) and attempt.sent_at < attempt.deadline:
        if attempt.remaining > 0:
            try:
                reply = yield Wait(source, attempt, reply)
                if isinstance(reply, int) and (attempt.is_fresh(reply) or (yield from _extended(source, attempt))):
                    return reply
            except PASSING as error:
                attempt.note_failure(error)
                if isinstance(error, RedisUnavailable):
                    yield pause(attempt.deadline, 0)
        else:
            attempt.note_refusal(reply)
        reply = yield from _request(source, attempt)  # also to count as a waiter, or not to count any more
    return reply


def _request(source: LeaseSource, attempt: Attempt, *, has_waited: bool = True) -> Flow[Any]:
    """Request the lease. A caller that has waited repeats it after a failure, until the deadline.

    Others learn at once that the server is unavailable. A full pool says nothing about the server.
    """
    failures = 0
    while True:
        try:
            call = attempt.request(source)
            return (yield call if attempt.deadline == math.inf else _InTime(call, attempt))
        except PASSING as error:
            attempt.note_failure(error)
            if attempt.remaining <= 0 or not (has_waited or isinstance(error, PoolExhausted)):
                raise
        yield pause(attempt.deadline, failures)
        failures += 1


def pause(deadline: float, failures: int) -> Sleep:
    """Return the step between a failure and the next request: at random, and no longer than the deadline allows."""
    seconds = full_jitter(failures, first=FIRST_PAUSE, longest=INTERVAL)
    return Sleep(max(min(seconds, deadline - monotonic()), 0.0))


def _extended(source: LeaseSource, attempt: Attempt) -> Flow[bool]:
    attempt.sent_at = monotonic()
    return bool((yield source.extend_step(attempt.token, attempt.ttl_ms, ExtendMode.AT_LEAST)))


class _InTime:
    """A step: a request that waits for a connection no longer than its attempt may last."""

    __slots__ = ("attempt", "call")

    def __init__(self, call: ScriptCall, attempt: Attempt) -> None:
        self.call, self.attempt = call, attempt

    def run(self, client: Any) -> Any:
        return self.call.run(_hurried(client, self.attempt))

    async def arun(self, client: Any) -> Any:
        return await self.call.arun(_hurried(client, self.attempt))


def _hurried(client: Any, attempt: Attempt) -> Any:
    return client.within(max(attempt.remaining, LAST_WAIT))


class Wait:
    """A step: wait until the lease is granted or ``attempt`` gives up, and return the reply of the server.

    Blocks on a list of wake-ups with one command for the whole wait. The request for the lease is queued behind it, so
    the server answers the request at the moment of the wake-up. Sends one more request per second.
    """

    __slots__ = ("attempt", "key", "refusal", "reply", "source")

    def __init__(self, source: LeaseSource, attempt: Attempt, refusal: Refusal) -> None:
        self.source, self.attempt, self.refusal = source, attempt, refusal
        self.key = source.wake_up_list(refusal, attempt)
        self.reply: Any = None
        attempt.note_refusal(refusal)

    def run(self, client: Any) -> Any:
        """Block on the server."""
        client = _hurried(client, self.attempt)

        def ask() -> float | None:
            return self._pause_after(self.attempt.request(self.source).run(client))

        result = client.watch(*self._watch(ask))
        if isinstance(result, Exception):  # the server had lost the script
            return self._woken_request().run(client)
        return self.reply if result is None else result

    async def arun(self, client: Any) -> Any:
        """See run()."""
        client = _hurried(client, self.attempt)

        async def ask() -> float | None:
            return self._pause_after(await self.attempt.request(self.source).arun(client))

        result = await client.watch(*self._watch(ask))
        if isinstance(result, Exception):
            return await self._woken_request().arun(client)
        return self.reply if result is None else result

    def _watch(self, ask: Any) -> tuple[float, float, Any, Command, Command]:
        seconds = min(max(self.attempt.remaining, 0.001), LONGEST)
        return seconds, self._pause(), ask, ("BLPOP", self.key, f"{seconds:.3f}"), self._woken_request().command

    def _woken_request(self) -> ScriptCall:
        return self.attempt.request(self.source, woken=True)

    def _pause(self) -> float:
        # The holder may be dead, so no pause is longer than its lease.
        return float(min(INTERVAL, self.refusal[0] / 1000 + 0.001))

    def _pause_after(self, reply: Any) -> float | None:
        if isinstance(reply, int) or self.source.wake_up_list(reply, self.attempt) != self.key:
            self.reply = reply
            return None
        self.refusal = reply
        self.attempt.note_refusal(reply)
        return self._pause()
