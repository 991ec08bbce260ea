"""Asking the server: the calls of one or several throttles, decided by one script."""

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from struct import Struct, unpack_from
from time import monotonic
from typing import Any, Generic, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.errors import InvalidValue, KeyConflict, RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.keys import hashed
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument, Batch
from redis_kit.core.values.rates import MICROSECONDS, parse
from redis_kit.throttling import keys
from redis_kit.throttling.engine import refusal_cache
from redis_kit.throttling.engine.base import AnyThrottle, BaseThrottle
from redis_kit.throttling.settings import ThrottlingSettings
from redis_kit.throttling.strategies import base as strategies
from redis_kit.throttling.strategies.base import Strategy
from redis_kit.throttling.values.decision import Decision

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
    def cache_key(self) -> refusal_cache.CacheKey:
        """Return the key under which a refusal is remembered."""
        return self.throttle.id, self.identity, self.cost


class Outcome(NamedTuple):
    """The answer of the server: the decision, its time in microseconds, and the strategy with its figures.

    ``counted`` tells whether the call took anything that can be refunded.
    """

    decision: Decision
    stamp: int
    strategy: Strategy
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
    asked_at, throttle, identity_hash = monotonic(), call.throttle, hashed(call.identity)
    unreported = throttle.take_unreported() if mode else 0
    cached = refusal_cache.pop(call.cache_key, throttle.ban_window) if mode is Mode.COUNT else None
    numbers = NUMBERS.pack(_now(throttle), mode, call.cost, unreported, cached.repeats if cached else 0)
    entry = throttle.entry_of(identity_hash, call.identity).encode()
    try:
        reply = yield throttle.script(throttle.keys_of(identity_hash), [numbers + throttle.fixed_argument + entry])
    except RedisFailure:
        throttle.unreported += unreported
        raise
    return [_remembered(call, reply, mode, cached, asked_at)]


def _decide_all(calls: Sequence[Call[Any]], mode: Mode) -> Flow[list[Outcome]]:
    asked_at, now = monotonic(), _now(calls[0].throttle)
    unreported = [call.throttle.take_unreported() if mode else 0 for call in calls]
    cached = [_cached(call) if mode is Mode.COUNT else None for call in calls]
    names: list[str] = []
    args: list[Argument] = []
    for call, count, refusal in zip(calls, unreported, cached, strict=True):
        throttle, identity_hash = call.throttle, hashed(call.identity)
        numbers = NUMBERS.pack(now, mode, call.cost, count, refusal.repeats if refusal else 0)
        names += throttle.keys_of(identity_hash)
        args.append(numbers + throttle.fixed_argument + throttle.entry_of(identity_hash, call.identity).encode())
    algorithms = frozenset((call.throttle.algorithm.kind, call.throttle.algorithm.lua) for call in calls)
    step = strategies.decide_all(algorithms)(names, args)
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


def _remembered(
    call: Call[Any], reply: bytes, mode: Mode, cached: refusal_cache.Refusal | None, asked_at: float
) -> Outcome:
    """Return the outcome of a call, whose refusal is remembered."""
    outcome = _outcome(call, reply)
    if mode is Mode.COUNT and not outcome.decision.allowed:
        seconds = conf.section(ThrottlingSettings).REMEMBER
        if seconds and call.throttle.clock is None:
            refusal_cache.remember(call.cache_key, outcome.decision, asked_at=asked_at, seconds=seconds)
    elif cached:
        refusal_cache.put_back(call.cache_key, cached)
    return outcome


def _now(throttle: BaseThrottle) -> int:
    return -1 if throttle.clock is None else max(int(throttle.now()), 0)


def _cached(call: Call[Any]) -> refusal_cache.Refusal | None:
    throttle = call.throttle
    return None if throttle.shadow else refusal_cache.pop(call.cache_key, throttle.ban_window)


def _outcome(call: Call[Any], reply: bytes) -> Outcome:
    stamp, room, count = HEAD.unpack_from(reply)
    figures, rule = unpack_from(f"<{count}q", reply, HEAD.size), reply[HEAD.size + 8 * count :]
    throttle, strategy = call.throttle, call.throttle.algorithm
    if rule.startswith(b"x") or (rule.startswith(b"b") and throttle.shadow):
        return Outcome(throttle.answer(True, "exempt" if rule.startswith(b"x") else "shadow"), stamp, strategy)
    ban = b""
    if rule.startswith(b"b"):
        _, ban, _, rule = rule.split(b" ", 3)
    if rule:
        strategy = _overriding(throttle.strategy, rule)
    decision = strategy.decision(bool(room), stamp, figures, call.cost)
    if ban:  # a caller that came back at its end could be refused by the rate, and banned again
        seconds = max((int(ban) - stamp) / MICROSECONDS, decision.retry_after, 0.001)
        return Outcome(throttle.answer(False, "banned", seconds), stamp, strategy)
    if throttle.shadow and not room:
        decision = decision._replace(allowed=True, reason="shadow")
    return Outcome(decision, stamp, strategy, figures, room == COUNTED)


@lru_cache(maxsize=1024)
def _overriding(name: str, rule: bytes) -> Strategy:
    """Return the strategy with the rates of an override."""
    numbers, _, text = rule.decode(errors="replace").partition("#")
    try:
        strategy = strategies.load(name)(parse(text))
    except InvalidValue as error:
        raise KeyConflict(f"An override can't be read: {error}") from error
    if [str(number) for number in strategy.numbers] != numbers.split()[2:]:
        raise KeyConflict(f"The numbers of an override do not match its rates {text!r}.")
    return strategy


def settle(call: Call[Any], outcome: Outcome, actual: int) -> Any:
    """Return the step that corrects the cost of a call to its actual cost."""
    throttle, strategy = call.throttle, outcome.strategy
    state, numbers = throttle.keys(call.identity).state, strategy.numbers
    cost = min(call.cost, *(rate.burst for rate in strategy.rates))
    args = (throttle.now(), outcome.stamp, cost - actual, len(numbers), *numbers, *outcome.figures)
    return strategies.settle(strategy.lua)([state], args)


def tally(call: Call[Any]) -> ScriptCall:
    """Return the step that counts what an identity wants in the current period of the first rate."""
    throttle, period = call.throttle, round(call.throttle.counted_rates[0].period * MICROSECONDS)
    tally_keys = [keys.tally(throttle.keys(call.identity)), throttle.key(keys.DEMAND)]
    return TALLY(tally_keys, [throttle.now(), call.cost, period])
