"""Waiting without polling: blocked on a list of wake-ups, with one request for the lease per second.

In each process, only the first caller that wants a name talks to the server. A caller that has begun to wait goes on
after a failure that may pass, such as a lost connection: a token makes it safe to repeat a request.
"""

from math import inf
from time import monotonic
from typing import Any

from redis_kit.core.client.backoff import full_jitter
from redis_kit.core.errors import PoolExhausted, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Command, Sleep
from redis_kit.locks.acquiring.attempt import Attempt, Refusal
from redis_kit.locks.acquiring.local_queue import Turn
from redis_kit.locks.leases.lease import ExtendMode, LeaseSource
from redis_kit.locks.renewal import pending_releases

INTERVAL = 1.0  # seconds between two requests: the cost of a lost wake-up
LONGEST = 30.0  # seconds of one blocking command: proxies cut connections that are silent for longer
FIRST_PAUSE = 0.1  # seconds after a failure, at most; doubled after each further one, up to INTERVAL
LAST_WAIT = 0.05  # seconds that the last request waits for a connection
PASSING = (RedisUnavailable, PoolExhausted)  # failures that may pass


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
            return (yield call if attempt.deadline == inf else _InTime(call, attempt))
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

        result = client.watch(*self._timing(), ask, *self._commands())
        return self._retry().run(client) if isinstance(result, Exception) else self._answer(result)

    async def arun(self, client: Any) -> Any:
        """See run()."""
        client = _hurried(client, self.attempt)

        async def ask() -> float | None:
            return self._pause_after(await self.attempt.request(self.source).arun(client))

        result = await client.watch(*self._timing(), ask, *self._commands())
        return await self._retry().arun(client) if isinstance(result, Exception) else self._answer(result)

    def _timing(self) -> tuple[float, float]:
        return min(max(self.attempt.remaining, 0.001), LONGEST), self._pause()

    def _commands(self) -> tuple[Command, Command]:
        block = ("BLPOP", self.key, f"{self._timing()[0]:.3f}")
        return block, self.attempt.request(self.source, woken=True).command

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

    def _answer(self, result: Any) -> Any:
        return self.reply if result is None else result

    def _retry(self) -> ScriptCall:
        return self.attempt.request(self.source, woken=True)  # the server had lost the script
