"""Waiting without polling: blocked on the list of wake-ups, with a look at the lock itself once a second."""

from collections.abc import Sequence
from os import urandom
from time import monotonic
from typing import TYPE_CHECKING, Any

from redis_kit.core.errors import RedisFailure, RedisUnavailable
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Command
from redis_kit.locks.acquiring.local_queue import Line

if TYPE_CHECKING:
    from redis_kit.locks.kinds.base import Leasing

NAP = 1.0  # seconds between two looks: what a lost wake-up costs
WAITING = 2500  # ms that a waiter counts as one after each look
LONGEST = 3600.0  # seconds of one blocking command
FRESH = 0.1  # share of a lease that may be over when its holder learns of it

Refusal = Sequence[Any]


class Attempt:
    """One try to get a lease: its token, and what a waiter has to tell."""

    __slots__ = (
        "_next_fence",
        "asked",
        "begun",
        "give_up",
        "lasting",
        "line",
        "patient",
        "since",
        "token",
        "ttl",
        "wake",
        "woken",
    )

    def __init__(self, lasting: float, *, patience: float) -> None:
        self.token, self.lasting, self.ttl = urandom(16).hex(), lasting, round(lasting * 1000)
        self.asked = monotonic()
        self.give_up, self.patient = self.asked + patience, patience > 0
        self.since, self.woken, self.wake, self._next_fence = 0, 0, "", 0
        self.begun = False
        self.line: Line | None = None

    @property
    def left(self) -> float:
        """Return for how many seconds it goes on waiting."""
        return self.give_up - monotonic()

    @property
    def waiting(self) -> int:
        """Return for how many ms the caller counts as a waiter when refused; 0 when it gives up."""
        return WAITING if self.asked < self.give_up else 0

    @property
    def mates(self) -> list[str]:
        """Return the tokens of those of this process who wait for the same, with tickets of their own."""
        return self.line.tokens() if self.line else []

    def is_fresh(self, fence: int) -> bool:
        """Tell whether a lease that was granted during a wait was so after ``asked``, and not long after it.

        It may have been granted before the last look, and have ended since: then its fence is older than that look.
        """
        return fence >= self._next_fence and monotonic() - self.asked <= self.lasting * FRESH

    def ask(self, source: "Leasing", *, woken: bool = False) -> ScriptCall:
        """Return the step that asks for the lease now, or, woken, as soon as the wait before it is over."""
        self.asked, self.woken, self.begun = monotonic(), int(woken), True
        return source._take(self)

    def may_hold(self, error: BaseException) -> bool:
        """Tell whether the server may have granted the lease, or may do so yet, to an attempt that ends with an error.

        An error that the server answered means that it did not, unless another question was behind a blocked one.
        """
        if self.begun and not self.since and isinstance(error, RedisFailure):
            return isinstance(error, RedisUnavailable) and error.indeterminate
        return self.begun

    def refused(self, refusal: Refusal) -> None:
        """Note what a refusal tells: the fence that the next lease gets, which is the server's clock."""
        if refusal:
            self._next_fence = refusal[-1]
            self.since = self.since or refusal[-1] // 1000


class Wait:
    """A step: wait until the lease is free or ``attempt`` gives up, and return the answer of the server.

    Blocks on a list of wake-ups, with one command for as long as it waits; the question for the lease stands behind it,
    so that the server answers it at the moment of the wake-up. Sends one command a second besides.
    """

    __slots__ = ("attempt", "key", "refusal", "reply", "source")

    def __init__(self, source: "Leasing", attempt: Attempt, refusal: Refusal) -> None:
        self.source, self.attempt, self.refusal = source, attempt, refusal
        self.key = source._signal(refusal, attempt)
        self.reply: Any = None
        attempt.refused(refusal)

    def run(self, client: Any) -> Any:
        """Block on the server."""

        def look() -> float | None:
            return self._seen(self.attempt.ask(self.source).run(client))

        found = client.watch(*self._timing(), look, *self._commands())
        return self._again().run(client) if isinstance(found, Exception) else self._answer(found)

    async def arun(self, client: Any) -> Any:
        """See run()."""

        async def look() -> float | None:
            return self._seen(await self.attempt.ask(self.source).arun(client))

        found = await client.watch(*self._timing(), look, *self._commands())
        return await self._again().arun(client) if isinstance(found, Exception) else self._answer(found)

    def _timing(self) -> tuple[float, float]:
        return min(max(self.attempt.left, 0.001), LONGEST), self._pause()

    def _commands(self) -> tuple[Command, Command]:
        block = ("BLPOP", self.key, f"{self._timing()[0]:.3f}")
        return block, self.attempt.ask(self.source, woken=True).command

    def _pause(self) -> float:
        # The holder may be dead, so nobody waits for longer than its lease.
        return float(min(NAP, self.refusal[0] / 1000 + 0.001))

    def _seen(self, reply: Any) -> float | None:
        if isinstance(reply, int) or self.source._signal(reply, self.attempt) != self.key:
            self.reply = reply
            return None
        self.refusal = reply
        self.attempt.refused(reply)
        return self._pause()

    def _answer(self, found: Any) -> Any:
        return self.reply if found is None else found

    def _again(self) -> ScriptCall:
        return self.attempt.ask(self.source, woken=True)  # the server had lost the script
