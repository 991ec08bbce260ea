"""Asking the server: the calls of one or several throttles, decided by one script."""

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct, pack
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue, KeyConflict, RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.keys import hashed
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument, Batch
from redis_kit.throttling.component import ThrottleSettings
from redis_kit.throttling.engine import refusal_cache
from redis_kit.throttling.engine.demand import tally
from redis_kit.throttling.strategies import base
from redis_kit.throttling.strategies.base import Strategy
from redis_kit.throttling.values.decision import Decision
from redis_kit.throttling.values.rates import MICROSECONDS, parse

if TYPE_CHECKING:
    from redis_kit.throttling.throttles.throttle import Throttle


class Figures(dict[int, Struct]):
    """How so many figures are read; a strategy of a project may have any number of them."""

    def __missing__(self, count: int) -> Struct:
        """Make it at the first use."""
        made = self[count] = Struct(f"<{count}q")
        return made


ONE = Struct("<5d")  # what decide.lua gets for one call: now, consume, cost, unseen, mine
HEAD = Struct("<3q")  # of what decide.lua returns: now, room, how many figures
FIGURES = Figures()
COUNTED = 2


class Asked(NamedTuple):
    """One call of one throttle."""

    throttle: "Throttle"
    caller: str
    cost: int

    @property
    def key(self) -> refusal_cache.Key:
        """Return what a refusal of it is remembered by."""
        return self.throttle.id, self.caller, self.cost


class Outcome(NamedTuple):
    """What the server said: the decision, when it was made, in microseconds, by which rates, and with which figures.

    ``counted`` says whether the call took anything that can be given back.
    """

    decision: Decision
    stamp: int
    strategy: Strategy
    figures: tuple[int, ...] = ()
    counted: bool = False


def decide(calls: Sequence[Asked], *, consume: bool) -> Flow[list[Outcome]]:
    """Ask for a decision on every call: all are counted if all have room, or else none. One round trip."""
    if len(calls) == 1 and not calls[0].throttle.shadow:
        return _decide_one(calls[0], consume=consume)
    return _decide_all(calls, consume=consume)


def _decide_one(call: Asked, *, consume: bool) -> Flow[list[Outcome]]:
    # The same as _decide_all() for nearly every call, at half of its work.
    asked, throttle, who = monotonic(), call.throttle, hashed(call.caller)
    unseen, held = (throttle.take_unseen(), refusal_cache.taken(call.key, throttle.fresh)) if consume else (0, None)
    numbers = ONE.pack(_moment(throttle), consume, call.cost, unseen, held.given if held else 0)
    label = throttle.label_of(who, call.caller)
    try:
        reply = yield throttle.script(throttle.keys_of(who), [numbers, throttle.counting.kind, label, *throttle.fixed])
    except RedisFailure:
        throttle.unseen += unseen
        raise
    outcome = _outcome(call, reply)
    if consume and not outcome.decision.allowed:
        _remember(call, outcome.decision, asked)
    elif held:
        refusal_cache.put_back(call.key, held)
    return [outcome]


def _decide_all(calls: Sequence[Asked], *, consume: bool) -> Flow[list[Outcome]]:
    asked, unseen = monotonic(), [call.throttle.take_unseen() if consume else 0 for call in calls]
    held = [refusal_cache.taken(call.key, call.throttle.fresh) if consume else None for call in calls]
    mine = [one.given if one else 0 for one in held]
    step, *tallies = _steps(calls, unseen, mine, consume=consume)
    try:
        reply = (yield Batch([step, *tallies]))[0] if tallies else (yield step)
    except RedisFailure:
        for call, hidden in zip(calls, unseen, strict=True):
            call.throttle.unseen += hidden
        raise
    outcomes = []
    for call, kept, text in zip(calls, held, reply if isinstance(reply, list) else [reply], strict=True):
        outcome = _outcome(call, text)
        outcomes.append(outcome)
        if consume and not outcome.decision.allowed:
            _remember(call, outcome.decision, asked)
        elif kept:
            refusal_cache.put_back(call.key, kept)
    return outcomes


def _moment(throttle: "Throttle") -> int:
    return -1 if throttle.clock is None else max(round(throttle.clock() * MICROSECONDS), 0)


def _steps(calls: Sequence[Asked], unseen: Sequence[int], mine: Sequence[int], *, consume: bool) -> list[ScriptCall]:
    """Return the step that decides, and those that count what callers of throttles in shadow mode want."""
    throttle, tallies = calls[0].throttle, []
    numbers = [_moment(throttle), int(consume)]
    keys: list[str] = []
    args: list[Argument] = []
    for call, hidden, own in zip(calls, unseen, mine, strict=True):
        throttle, who = call.throttle, hashed(call.caller)
        numbers += call.cost, hidden, own
        keys += throttle.keys_of(who)
        args += throttle.counting.kind, throttle.label_of(who, call.caller), *throttle.fixed
        if consume and throttle.shadow:
            tallies.append(tally(throttle, call.caller, call.cost))
    script = throttle.script
    if len(calls) > 1:
        script = base.script("decide", *[call.throttle.counting.lua for call in calls])
    return [script(keys, [pack(f"<{len(numbers)}d", *numbers), *args]), *tallies]


def _outcome(call: Asked, reply: bytes) -> Outcome:
    stamp, room, count = HEAD.unpack_from(reply)
    figures, rule = FIGURES[count].unpack_from(reply, HEAD.size), reply[HEAD.size + 8 * count :]
    throttle, strategy = call.throttle, call.throttle.counting
    if rule and rule[:1] in b"xb":
        return Outcome(_by_rule(throttle, rule, stamp), stamp, strategy)
    if rule:
        strategy = _other(throttle.strategy, rule)
    decision = strategy.decision(bool(room), stamp, figures, call.cost)
    if throttle.shadow and not room:
        decision = decision._replace(allowed=True, reason="shadow")
    return Outcome(decision, stamp, strategy, figures, room == COUNTED)


def _by_rule(throttle: "Throttle", rule: bytes, stamp: int) -> Decision:
    if rule.startswith(b"x"):
        return throttle.answer(True, "exempt")
    if throttle.shadow:
        return throttle.answer(True, "shadow")
    return throttle.answer(False, "banned", max((int(rule.split()[1]) - stamp) / MICROSECONDS, 0.001))


@lru_cache(maxsize=1024)
def _other(name: str, rule: bytes) -> Strategy:
    numbers, _, text = rule.decode(errors="replace").partition("#")
    try:
        found = base.load(name)(parse(text))
    except InvalidValue as error:
        raise KeyConflict(f"A rule for other rates can't be read: {error}") from error
    if [str(number) for number in found.numbers] != numbers.split()[2:]:
        raise KeyConflict(f"The numbers of a rule for other rates are not those of {text!r}.")
    return found


def _remember(call: Asked, decision: Decision, asked: float) -> None:
    seconds = conf.section(ThrottleSettings).REMEMBER
    if seconds and call.throttle.clock is None:
        refusal_cache.remember(call.key, decision, asked=asked, seconds=seconds)


def settle(call: Asked, outcome: Outcome, actual: int) -> Any:
    """Return the step that makes the cost of a call what it was in the end."""
    throttle, strategy = call.throttle, outcome.strategy
    state, numbers = throttle.keys(call.caller)[0], strategy.numbers
    cost = min(call.cost, *(rate.burst for rate in strategy.rates))
    args = (strategy.kind, throttle.now(), outcome.stamp, cost - actual, len(numbers), *numbers, *outcome.figures)
    return base.script("settle", strategy.lua)([state], args)
