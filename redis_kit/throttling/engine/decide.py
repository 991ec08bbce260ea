"""Asking the server: calls of one or several throttles, decided by one script, and their correction afterwards."""

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from struct import Struct, unpack_from
from time import monotonic
from typing import Any, Generic, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.errors import InvalidValue, KeyConflict, RedisFailure
from redis_kit.core.flow import Flow, single, twin
from redis_kit.core.keys import hashed
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.rates import MICROSECONDS, parse
from redis_kit.throttling.engine import memory
from redis_kit.throttling.engine.base import AnyThrottle, Asked, BaseThrottle, asking
from redis_kit.throttling.keys import DEMAND, tally_key
from redis_kit.throttling.settings import ThrottlingSettings
from redis_kit.throttling.strategies import Strategy, decide_all
from redis_kit.throttling.strategies import load as load_strategy
from redis_kit.throttling.strategies import settle as settle_by
from redis_kit.throttling.values import Decision

TALLY = scripts.load("redis_kit.throttling", "tally")


NUMBERS = Struct("<5d")  # the first ones of an argument of decide.lua: now, consume, cost, unreported, own
HEAD = Struct("<3q")  # beginning of a reply of decide.lua: now, room, how many figures
COUNTED = 2


class Mode(IntEnum):
    """The parts of a call that the server counts, see decide_one.lua."""

    LOOK = 0  # nothing
    COUNT = 1  # the call, or its refusal
    WAIT = 2  # the call if it has room; else nothing, since it waits
    GIVE_UP = 3  # as COUNT, but a refusal does not count towards a ban


class Call(NamedTuple, Generic[AnyThrottle]):
    """One call that a throttle decides on."""

    throttle: AnyThrottle
    identity: str
    cost: int

    @property
    def cache_key(self) -> memory.CacheKey:
        """Return the key under which a refusal is remembered."""
        return self.throttle.id, self.identity, self.cost


class Outcome(NamedTuple):
    """An answer: the decision, and if the server counted it, its time in microseconds, the strategy and its figures.

    ``counted`` tells whether the call took anything that can be refunded.
    """

    decision: Decision
    stamp: int = 0
    strategy: Strategy | None = None
    figures: tuple[int, ...] = ()
    counted: bool = False


def decide(calls: Sequence[Call[Any]], mode: Mode = Mode.COUNT) -> Flow[list[Outcome]]:
    """Decide on calls: all are counted if all have room, else none is. One round trip.

    Several calls are counted, or looked at. A throttle in shadow mode never lets a call wait.
    """
    if len(calls) == 1 and not calls[0].throttle.shadow:
        return _decide_one(calls[0], mode)
    return _decide_all(calls, min(mode, Mode.COUNT))


def _decide_one(call: Call[Any], mode: Mode) -> Flow[list[Outcome]]:
    # Does the same as _decide_all() for most calls, with half of the work, also on the server.
    asked_at, throttle = monotonic(), call.throttle
    names, argument, unreported, cached = _prepared(call, mode, _now(throttle))
    try:
        reply = yield throttle.script(names, [argument])
    except RedisFailure:
        throttle.unreported += unreported
        raise
    return [_remembered(call, reply, mode, cached, asked_at)]


def _decide_all(calls: Sequence[Call[Any]], mode: Mode) -> Flow[list[Outcome]]:
    asked_at, now = monotonic(), _now(calls[0].throttle)
    names, args, unreported, cached = zip(*(_prepared(call, mode, now) for call in calls), strict=True)
    kinds = frozenset((call.throttle.algorithm.kind, call.throttle.algorithm.lua) for call in calls)
    step = decide_all(kinds)([name for each in names for name in each], args)
    tallies = [tally(call) for call in calls if mode and call.throttle.shadow]
    try:
        replies = (yield Batch([step, *tallies]))[0] if tallies else (yield step)
    except RedisFailure:
        for call, count in zip(calls, unreported, strict=True):
            call.throttle.unreported += count
        raise
    return [
        _remembered(call, reply, mode, refusal, asked_at)
        for call, refusal, reply in zip(calls, cached, replies, strict=True)
    ]


def _prepared(call: Call[Any], mode: Mode, now: int) -> tuple[Sequence[str], bytes, int, memory.Refusal | None]:
    """Return the keys and the argument of a call, the refusals that it reports, and the remembered one of its own."""
    throttle, identity_hash, cached = call.throttle, hashed(call.identity), None
    if mode is Mode.COUNT and not throttle.shadow:
        cached = memory.pop(call.cache_key, throttle.ban_window)
    unreported = throttle.take_unreported() if mode else 0
    numbers = NUMBERS.pack(now, mode, call.cost, unreported, cached.repeats if cached else 0)
    entry = throttle.entry_of(identity_hash, call.identity).encode()
    return throttle.keys_of(identity_hash), numbers + throttle.fixed_argument + entry, unreported, cached


def _remembered(call: Call[Any], reply: bytes, mode: Mode, cached: memory.Refusal | None, asked_at: float) -> Outcome:
    """Return the outcome of a call, whose refusal is remembered."""
    outcome = _outcome(call, reply)
    if mode is Mode.COUNT and not outcome.decision.allowed:
        seconds = conf.section(ThrottlingSettings).REMEMBER
        if seconds and call.throttle.clock is None:
            memory.remember(call.cache_key, outcome.decision, asked_at=asked_at, seconds=seconds)
    elif cached:
        memory.put_back(call.cache_key, cached)
    return outcome


def _now(throttle: BaseThrottle) -> int:
    return -1 if throttle.clock is None else max(int(throttle.now()), 0)


def _outcome(call: Call[Any], reply: bytes) -> Outcome:
    stamp, room, count = HEAD.unpack_from(reply)
    figures, rule = unpack_from(f"<{count}q", reply, HEAD.size), reply[HEAD.size + 8 * count :]
    throttle, strategy = call.throttle, call.throttle.algorithm
    if rule.startswith(b"x") or (rule.startswith(b"b") and throttle.shadow):
        return Outcome(throttle.answer(True, "exempt" if rule.startswith(b"x") else "shadow"))
    ban = b""
    if rule.startswith(b"b"):
        _, ban, _, rule = rule.split(b" ", 3)
    if rule:
        strategy = _overriding(throttle.strategy, rule)
    decision = strategy.decision(bool(room), stamp, figures, call.cost)
    if ban:  # a caller that came back at its end could be refused by the rate, and banned again
        seconds = max((int(ban) - stamp) / MICROSECONDS, decision.retry_after, 0.001)
        return Outcome(throttle.answer(False, "banned", seconds))
    if throttle.shadow and not room:
        decision = decision._replace(allowed=True, reason="shadow")
    return Outcome(decision, stamp, strategy, figures, room == COUNTED)


@lru_cache(maxsize=1024)
def _overriding(name: str, rule: bytes) -> Strategy:
    """Return the strategy with the rates of an override."""
    numbers, _, text = rule.decode(errors="replace").partition("#")
    try:
        strategy = load_strategy(name)(parse(text))
    except InvalidValue as error:
        raise KeyConflict(f"An override can't be read: {error}") from error
    if [str(number) for number in strategy.numbers] != numbers.split()[2:]:
        raise KeyConflict(f"The numbers of an override do not match its rates {text!r}.")
    return strategy


def settle(call: Call[Any], outcome: Outcome, actual: int) -> Any:
    """Return the step that corrects the cost of a call to its actual cost."""
    throttle, strategy = call.throttle, outcome.strategy or call.throttle.algorithm
    state, numbers = throttle.keys(call.identity).state, strategy.numbers
    cost = min(call.cost, *(rate.burst for rate in strategy.rates))
    args = (throttle.now(), outcome.stamp, cost - actual, len(numbers), *numbers, *outcome.figures)
    return settle_by(strategy.lua)([state], args)


def tally(call: Call[Any]) -> ScriptCall:
    """Return the step that counts what an identity wants in the current period of the first rate."""
    throttle, period = call.throttle, round(call.throttle.counted_rates[0].period * MICROSECONDS)
    tally_keys = [tally_key(throttle.keys(call.identity)), throttle.key(DEMAND)]
    return TALLY(tally_keys, [throttle.now(), call.cost, period])


SKIPPED = dict.fromkeys(("if_open", "if_closed", "if_local"))  # corrections are skipped while the server is unavailable


class Reservation:
    """A call that was counted before its cost was known. Truthy if the call is allowed.

    A refused call took nothing. Without ``settle()`` it stays counted at its full cost.
    """

    def __init__(self, call: Call[Any], outcome: Outcome) -> None:
        self._call, self._outcome, self._settled = call, outcome, False

    def __bool__(self) -> bool:
        return self.decision.allowed

    @property
    def throttle(self) -> BaseThrottle:
        """The throttle that counted the call."""
        throttle: BaseThrottle = self._call.throttle
        return throttle

    @property
    def decision(self) -> Decision:
        """The decision on the call at the reserved cost."""
        return self._outcome.decision

    @asking
    def settle(self, actual: int) -> Flow[None]:
        """Set the cost of the call to ``actual``, 0 or more. The rest of the reserved cost is refunded.

        A cost beyond the reserved one is counted as far as there is room, and never refused. Takes one round trip, or
        none if ``actual`` is the reserved cost or nothing was counted. Does nothing while the server is unavailable.
        Raises InvalidValue the second time.
        """
        return self._settle(actual)

    @asking
    def refund(self) -> Flow[None]:
        """Refund the whole cost, as if the call had never happened. See ``settle()``."""
        return self._settle(0)

    def correction_step(self, actual: int) -> ScriptCall | None:
        """Return the step that sets the cost of the call; None if nothing is to be corrected. See settle()."""
        whole_number("actual", actual, (0, 2**31))
        if self._settled:
            raise InvalidValue(f"The cost of the reservation with the throttle {self.throttle.name!r} was already set.")
        self._settled = True
        is_due = self._outcome.counted and actual != self._call.cost
        return settle(self._call, self._outcome, actual) if is_due else None

    def _settle(self, actual: int) -> Flow[None]:
        if step := self.correction_step(actual):
            yield Asked(self.throttle, single(step), **SKIPPED)

    asettle = twin(settle)
    arefund = twin(refund)


def refund_flow(reservations: Sequence[Reservation]) -> Flow[None]:
    """Refund the calls of one request, without a client. One round trip; all of them use one connection."""
    if steps := [step for reservation in reservations if (step := reservation.correction_step(0))]:
        yield Asked(reservations[0].throttle, single(Batch(steps)), **SKIPPED)
