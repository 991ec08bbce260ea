"""Strategies: how a throttle counts. Each is three functions on the server and the reading of their figures."""

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from operator import itemgetter
from typing import ClassVar

from django.utils.module_loading import import_string

from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.core.scripts import Script
from redis_kit.core.scripts import load as load_script
from redis_kit.core.text import did_you_mean
from redis_kit.throttling.values.decision import Decision
from redis_kit.throttling.values.rates import Rate

STRATEGIES = {
    "gcra": "redis_kit.throttling.strategies.gcra.GCRA",
    "token_bucket": "redis_kit.throttling.strategies.gcra.TokenBucket",
    "fixed_window": "redis_kit.throttling.strategies.windows.FixedWindow",
    "sliding_counter": "redis_kit.throttling.strategies.windows.SlidingCounter",
    "sliding_log": "redis_kit.throttling.strategies.sliding_log.SlidingLog",
}
# A strategy's name is part of the keys that throttles store: this one is the path that it had when they were made.
OVERRUN = "redis_kit.throttling.overrun.Overrun"
MOVED = {OVERRUN: "redis_kit.throttling.strategies.overrun.Overrun"}
MARK = "-- @strategies\n"


# How one rate stands for one caller: the rate, its limit, what remains of it, and the microseconds to wait (0 or less
# when a call has room) and until all is as if the caller had never come.
State = tuple[Rate, int, int, int, int]


class Strategy:
    """How the calls of one identity are counted against all rates of a throttle.

    ``lua`` puts three functions into ``strategies.<kind>``. ``numbers`` are what they get as their table ``rates``, and
    times are microseconds:

    - ``look(key, now, cost, rates)`` returns whether the call has room, a table of whole numbers (the figures), and
      whether the clock went back since the last call, in which case ``take()`` is called even after a refusal.
    - ``take(key, now, cost, rates, figures)`` counts the call and brings the figures up to date.
    - ``give(key, now, stamp, amount, rates, figures)`` gives back so many calls counted at ``stamp``, with the figures
      of then; a negative amount counts more, as far as there is room.

    A cost above a limit, which rates given by a rule may have, takes the whole of it.
    """

    kind: ClassVar[str]
    lua: ClassVar[str]
    bursts: ClassVar[bool] = False  # whether a burst may differ from the limit

    def __init__(self, rates: Sequence[Rate]) -> None:
        self.rates = tuple(rates)
        self.numbers: tuple[int, ...] = ()
        odd = next((rate for rate in self.rates if rate.burst != rate.limit and not self.bursts), None)
        if odd:
            raise InvalidValue(f"The strategy {self.kind} has no burst, as {odd} asks for: use gcra or token_bucket.")

    def state(self, place: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Return how the rate at a place stands."""
        raise NotImplementedError

    def decision(self, allowed: bool, now: int, figures: Sequence[int], cost: int) -> Decision:
        """Return the decision that the server's figures stand for."""
        found = self.state(0, now, figures, cost)
        if len(self.rates) > 1:
            states = [found, *(self.state(place, now, figures, cost) for place in range(1, len(self.rates)))]
            found = min(states, key=_remaining) if allowed else max(states, key=_wait)
        rate, limit, remaining, wait, reset = found
        seconds = 0.0 if allowed else max(wait, 1) / 1_000_000
        return Decision(allowed, limit, max(remaining, 0), seconds, reset / 1_000_000, rate)


_remaining, _wait = itemgetter(2), itemgetter(3)


def fragment(name: str) -> str:
    """Return the text of one of the kit's strategies on the server."""
    return (files("redis_kit.throttling") / "scripts" / f"_{name}.lua").read_text(encoding="utf-8")


@lru_cache(maxsize=1024)
def script(name: str, *lua: str) -> Script:
    """Return a script with the strategies that it needs, and no others."""
    plain = load_script("redis_kit.throttling", name)
    return Script(plain.name, plain.source.replace(MARK, "".join(sorted(set(lua))), 1))


def load(name: str) -> type[Strategy]:
    """Return a strategy's class by its name or its dotted path. Raises InvalidValue for anything else."""
    path = (STRATEGIES | MOVED).get(name, name) if isinstance(name, str) else ""
    if "." not in path:
        hint = did_you_mean(name, STRATEGIES, f"Use {', '.join(map(repr, STRATEGIES))} or a dotted path.")
        raise InvalidValue(f"There is no strategy {name!r}. {hint}")
    try:
        found = import_string(path)
    except ImportError as error:
        raise ConfigurationError(f"The strategy {name!r} can't be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Strategy)):
        raise ConfigurationError(f"The strategy {name!r} is no subclass of redis_kit.throttling.Strategy.")
    return found
