"""Strategies: how a throttle counts. Each has three functions on the server, and reads their figures."""

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from operator import itemgetter
from typing import ClassVar

from django.utils.module_loading import import_string

from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.core.scripts import Script
from redis_kit.core.scripts import load as load_script
from redis_kit.core.text import did_you_mean, shortened
from redis_kit.core.values.rates import MICROSECONDS, Rate
from redis_kit.throttling.values import Decision

__all__ = ["Strategy", "decide_all", "decide_one", "fragment", "load", "settle"]

STRATEGIES = {
    "gcra": "redis_kit.throttling.strategies.GCRA",
    "token_bucket": "redis_kit.throttling.strategies.TokenBucket",
    "fixed_window": "redis_kit.throttling.strategies.FixedWindow",
    "sliding_counter": "redis_kit.throttling.strategies.SlidingCounter",
    "sliding_log": "redis_kit.throttling.strategies.SlidingLog",
}
# In the Lua code of a built-in strategy, the rest is for reservations only.
RESERVATIONS = "-- @reservations\n"
TABLE = """\
do
%s
strategies["%s"] = {look = look, take = take}
end
"""


# The state of one rate: the rate, its limit, the remaining calls, the microseconds to wait (0 or less if a call has
# room), and the microseconds until nothing is counted any more.
State = tuple[Rate, int, int, int, int]


class Strategy:
    """How the calls of one identity are counted for all rates of a throttle.

    ``lua`` defines three local functions. Their table ``rates`` holds ``numbers``; times are microseconds:

    - ``look(key, now, cost, rates)`` returns whether the call has room, a table of whole numbers (the figures), and
      whether the clock went back since the last call. If it did, ``take()`` is called even after a refusal.
    - ``take(key, now, cost, rates, figures)`` counts the call and updates the figures.
    - ``give(key, now, stamp, amount, rates, figures)`` refunds ``amount`` calls that were counted at ``stamp``, given
      the figures of that time. A negative amount counts more calls, as far as there is room.

    A cost above a limit, which is possible with the rates of an override, takes the whole limit.
    """

    kind: ClassVar[str]
    lua: ClassVar[str]
    bursts: ClassVar[bool] = False  # whether a burst may differ from the limit

    def __init__(self, rates: Sequence[Rate]) -> None:
        self.rates = tuple(rates)
        self.numbers: tuple[int, ...] = ()
        odd = next((rate for rate in self.rates if rate.burst != rate.limit and not self.bursts), None)
        if odd:
            raise InvalidValue(
                f"The strategy {self.kind} does not support the burst of {odd}: use gcra or token_bucket."
            )

    def state(self, index: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Return the state of the rate at an index."""
        raise NotImplementedError

    def decision(self, allowed: bool, now: int, figures: Sequence[int], cost: int) -> Decision:
        """Return the decision for the figures of the server."""
        decisive = self.state(0, now, figures, cost)
        if len(self.rates) > 1:
            states = [decisive, *(self.state(index, now, figures, cost) for index in range(1, len(self.rates)))]
            decisive = min(states, key=_remaining) if allowed else max(states, key=_wait)
        try:
            rate, limit, remaining, wait, reset = decisive
        except (TypeError, ValueError) as error:
            what = f"{type(self).__name__}.state() must return (rate, limit, remaining, wait, reset)"
            raise ConfigurationError(f"{what}, not {shortened(decisive)}.") from error
        seconds = 0.0 if allowed else max(wait, 1) / 1_000_000
        return Decision(allowed, limit, max(remaining, 0), seconds, reset / 1_000_000, rate)


_remaining, _wait = itemgetter(2), itemgetter(3)


def fragment(name: str) -> str:
    """Return the Lua code of a built-in strategy."""
    return (files("redis_kit.throttling") / "scripts" / f"_{name}.lua").read_text(encoding="utf-8")


@lru_cache(maxsize=1024)
def decide_one(lua: str, count: int) -> Script:
    """Return the script that decides by a strategy with this Lua code, for rates of ``count`` numbers."""
    return _script("decide_one", "-- @strategy\n", lua.partition(RESERVATIONS)[0], count)


@lru_cache(maxsize=1024)
def decide_all(kinds: frozenset[tuple[str, str]]) -> Script:
    """Return the script that decides by several strategies, given as pairs of kind and Lua code."""
    tables = [TABLE % (lua.partition(RESERVATIONS)[0], kind) for kind, lua in sorted(kinds)]
    return _script("decide", "-- @strategies\n", "".join(tables))


@lru_cache(maxsize=1024)
def settle(lua: str) -> Script:
    """Return the script that corrects the cost of a call by a strategy with this Lua code."""
    return _script("settle", "-- @strategy\n", lua)


def _script(name: str, mark: str, lua: str, count: int = 0) -> Script:
    plain = load_script("redis_kit.throttling", name)
    return Script(plain.name, plain.source.replace(mark, f"{lua}\n", 1).replace("@numbers", "d" * count, 1))


def load(name: str) -> type[Strategy]:
    """Return the class of a strategy by its name or dotted path. Raises InvalidValue and ConfigurationError."""
    path = STRATEGIES.get(name, name) if isinstance(name, str) else ""
    if "." not in path:
        use = f"Use {', '.join(map(repr, STRATEGIES))} or a dotted path."
        hint = did_you_mean(name, STRATEGIES)
        raise InvalidValue(" ".join(filter(None, (f"There is no strategy {name!r}.", hint, use))))
    try:
        strategy = import_string(path)
    except ImportError as error:
        raise ConfigurationError(f"The strategy {name!r} can't be imported: {error}") from error
    if not (isinstance(strategy, type) and issubclass(strategy, Strategy)):
        raise ConfigurationError(f"The strategy {name!r} is not a subclass of redis_kit.throttling.Strategy.")
    kind = getattr(strategy, "kind", None)
    if not isinstance(kind, str) or not re.fullmatch(r"[A-Za-z0-9_]+", kind):
        raise ConfigurationError(
            f"The kind of the strategy {name!r} must be letters, digits and '_', not {shortened(kind)}."
        )
    return strategy


class LeakyBucket:
    """One rate in whole numbers: a call adds ``price`` to the level, and a microsecond drains ``drain``.

    ``share`` multiplies the price, for processes that each have a bucket and share the rate.
    """

    __slots__ = ("capacity", "drain", "limit", "price", "rate")

    def __init__(self, rate: Rate, *, share: int = 1) -> None:
        self.rate = rate
        self.drain, price = rate.exact
        self.price = price * share
        self.capacity = max(rate.burst * price, self.price)
        self.limit = self.capacity // self.price

    def state(self, level: int, cost: int) -> State:
        """Return the state at a level."""
        left = self.capacity - level
        wait = -((left - min(cost, self.limit) * self.price) // self.drain)
        return self.rate, self.limit, left // self.price, wait, -(-level // self.drain)


class GCRA(Strategy):
    """The generic cell rate algorithm (ITU-T I.371): smooth, with a separate burst, and one number per rate.

    In any T seconds at most ``burst + T * limit / period`` calls pass. The level of a leaky bucket is stored instead of
    the equivalent theoretical arrival time: in multiples of ``1 / limit`` of a microsecond it is exact for every rate.
    """

    kind, lua, bursts = "gcra", fragment("gcra"), True

    def __init__(self, rates: Sequence[Rate], *, share: int = 1) -> None:
        super().__init__(rates)
        self.buckets = [LeakyBucket(rate, share=share) for rate in rates]
        self.numbers = tuple(
            number for bucket in self.buckets for number in (bucket.drain, bucket.price, bucket.capacity)
        )

    def state(self, index: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read the rate's level."""
        return self.buckets[index].state(figures[index], cost)


class TokenBucket(GCRA):
    """A bucket of up to ``burst`` tokens, refilled at ``limit`` per period; a call takes as many tokens as it costs.

    The tokens are the free room in GCRA's bucket, so both make the same decisions with the same functions on the
    server. Their counts are stored separately.
    """


class _Windows(Strategy):
    def __init__(self, rates: Sequence[Rate]) -> None:
        super().__init__(rates)
        self.pairs = [(rate, round(rate.period * MICROSECONDS)) for rate in rates]
        self.numbers = tuple(number for rate, period in self.pairs for number in (rate.limit, period))


class FixedWindow(_Windows):
    """``limit`` calls in each window of the clock. Windows start at multiples of the period since 1970 (UTC).

    One small number per rate, and the cheapest strategy. Around the end of a window up to twice the limit can pass in
    one period; if that matters, use ``sliding_log`` or ``gcra``.
    """

    kind, lua = "fixed_window", fragment("fixed_window")

    def state(self, index: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read the count of the rate's window."""
        (rate, period), count = self.pairs[index], figures[index]
        remaining, rest = rate.limit - count, period - now % period
        return rate, rate.limit, remaining, rest if min(cost, rate.limit) > remaining else 0, rest if count else 0


class SlidingCounter(_Windows):
    """The calls of this window, and a share of the previous one: the part that the last period still covers.

    Two numbers per rate. It assumes that the calls of the previous window were evenly spread. If they were not, up to
    the whole share too many or too few calls can pass (Cloudflare's approximation, 2017).
    """

    kind, lua = "sliding_counter", fragment("sliding_counter")

    def state(self, index: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read the counts of this window and the previous one."""
        (rate, period), current, previous = self.pairs[index], figures[2 * index], figures[2 * index + 1]
        rest = period - now % period
        remaining = ((rate.limit - current) * period - previous * rest) // period
        room = rate.limit - min(cost, rate.limit)
        wait = self._wait(room, period, rest, current, previous) if remaining < rate.limit - room else 0
        return rate, rate.limit, remaining, wait, rest + period if current else rest if previous else 0

    def _wait(self, room: int, period: int, rest: int, current: int, previous: int) -> int:
        """Return the microseconds until what remains of both windows fits into ``room``."""
        if current <= room:
            return rest - (room - current) * period // previous
        return rest + period - room * period // current


class Overrun(FixedWindow):
    """Fixed windows in which the first refused call is counted too; ``remaining`` is -1 from then on.

    For compat.py: there a later look tells whether the limit was exceeded, not whether the next call would exceed it.
    """

    kind, lua = "overrun", FixedWindow.lua.replace("BEYOND = 0", "BEYOND = 1")

    def state(self, index: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read the count of the window. The reset is the end of the window, even if nothing was counted."""
        period = self.pairs[index][1]
        return *super().state(index, now, figures, cost)[:4], period - now % period

    def decision(self, allowed: bool, now: int, figures: Sequence[int], cost: int) -> Decision:
        """Return the decision for the figures of the server."""
        decision = super().decision(allowed, now, figures, cost)
        exceeded = any(count > rate.limit for (rate, _), count in zip(self.pairs, figures, strict=True))
        return decision._replace(remaining=-1) if exceeded else decision


LARGEST = 10_000  # limit


class SlidingLog(Strategy):
    """Never more than ``limit`` calls in any period, wherever it starts.

    Stores the time of each allowed call in 8 bytes, up to the largest limit, which is at most 10,000.
    """

    kind, lua = "sliding_log", fragment("sliding_log")

    def __init__(self, rates: Sequence[Rate]) -> None:
        super().__init__(rates)
        largest = max((rate.limit for rate in rates), default=1)
        if largest > LARGEST:
            raise InvalidValue(f"The strategy sliding_log stores at most {LARGEST} calls, not {largest}: use gcra.")
        periods = [round(rate.period * MICROSECONDS) for rate in rates]
        pairs = zip((rate.limit for rate in rates), periods, strict=True)
        self.numbers = (largest, max(periods, default=1), *(number for pair in pairs for number in pair))

    def state(self, index: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read three numbers: calls in the period, time until the call has room, time until all have expired."""
        rate, (count, wait, reset) = self.rates[index], figures[3 * index : 3 * index + 3]
        return rate, rate.limit, rate.limit - count, wait, reset
