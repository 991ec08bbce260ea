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
from redis_kit.core.values.rates import Rate
from redis_kit.throttling.values.decision import Decision

STRATEGIES = {
    "gcra": "redis_kit.throttling.strategies.gcra.GCRA",
    "token_bucket": "redis_kit.throttling.strategies.gcra.TokenBucket",
    "fixed_window": "redis_kit.throttling.strategies.windows.FixedWindow",
    "sliding_counter": "redis_kit.throttling.strategies.windows.SlidingCounter",
    "sliding_log": "redis_kit.throttling.strategies.sliding_log.SlidingLog",
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
