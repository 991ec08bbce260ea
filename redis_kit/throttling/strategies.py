"""Strategies: how a throttle counts. Each is one script on the server and the reading of its reply."""

import difflib
from collections.abc import Sequence
from typing import Any, ClassVar

from django.utils.module_loading import import_string

from redis_kit.core import scripts
from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.throttling.decision import Decision
from redis_kit.throttling.rates import Rate

STRATEGIES = {"gcra": "redis_kit.throttling.strategies.GCRA"}


class Strategy:
    """How the calls of one identity are counted against all rates of a throttle.

    ``script`` gets the keys ``state`` and ``minutes`` and the arguments cost, consume (1, or 0 for a peek), unseen,
    and then ``arguments``. It replies with 1 or 0 for allowed and whatever ``decision()`` reads.
    """

    script: ClassVar[scripts.Script]

    def __init__(self, rates: Sequence[Rate]) -> None:
        self.rates = tuple(rates)
        self.arguments: tuple[int, ...] = ()

    def decision(self, reply: Sequence[Any], cost: int) -> Decision:
        """Return the decision that the script's reply stands for."""
        raise NotImplementedError


class Meter:
    """One rate as a leaking bucket in whole numbers: a call adds ``price``, a microsecond takes ``drain`` away.

    ``share`` makes a call that much dearer, for one of that many processes with a bucket each.
    """

    __slots__ = ("capacity", "drain", "price", "rate")

    def __init__(self, rate: Rate, *, share: int = 1) -> None:
        self.rate = rate
        self.drain, price = rate.exact
        self.price = price * share
        self.capacity = max(rate.burst * price, self.price)

    def remaining(self, level: int) -> int:
        """Return how many calls fit in at once."""
        return (self.capacity - level) // self.price

    def wait(self, level: int, cost: int) -> int:
        """Return the microseconds until a call of this cost fits in; 0 or less when it does now."""
        return -((self.capacity - level - cost * self.price) // self.drain)

    def empty(self, level: int) -> int:
        """Return the microseconds until nothing is in it."""
        return -(-level // self.drain)


class GCRA(Strategy):
    """The generic cell rate algorithm (ITU-T I.371): smooth, a burst apart from the rate, one number per rate.

    In any stretch of T seconds at most ``burst + T * limit / period`` calls pass. Kept as the level of a leaking
    bucket, the book's funnel, rather than as the theoretical arrival time that it is equal to: as whole multiples of
    ``1 / limit`` of a microsecond the level is exact for every rate.
    """

    script = scripts.load(__package__, "gcra")

    def __init__(self, rates: Sequence[Rate], *, share: int = 1) -> None:
        super().__init__(rates)
        self.meters = [Meter(rate, share=share) for rate in rates]
        self.arguments = tuple(number for one in self.meters for number in (one.drain, one.price, one.capacity))

    def decision(self, reply: Sequence[Any], cost: int) -> Decision:
        """Read {allowed, now, level of each rate}."""
        allowed, found = bool(reply[0]), list(zip(self.meters, reply[2:], strict=True))
        if allowed:
            meter, level = min(found, key=lambda one: one[0].remaining(one[1]))
            wait = 0
        else:
            meter, level = max(found, key=lambda one: one[0].wait(one[1], cost))
            wait = meter.wait(level, cost)
        limit = meter.capacity // meter.price
        left, reset = meter.remaining(level), meter.empty(level)
        return Decision(allowed, limit, left, wait / 1_000_000, reset / 1_000_000, meter.rate)


def load(name: str) -> type[Strategy]:
    """Return a strategy's class by its name or its dotted path. Raises InvalidValue for anything else."""
    path = STRATEGIES.get(name, name) if isinstance(name, str) else ""
    if "." not in path:
        near = difflib.get_close_matches(str(name), STRATEGIES, n=1)
        advice = f"Did you mean {near[0]!r}?" if near else f"Use {', '.join(map(repr, STRATEGIES))} or a dotted path."
        raise InvalidValue(f"There is no strategy {name!r}. {advice}")
    try:
        found = import_string(path)
    except ImportError as error:
        raise ConfigurationError(f"The strategy {name!r} can't be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Strategy)):
        raise ConfigurationError(f"The strategy {name!r} is no subclass of redis_kit.throttling.Strategy.")
    return found
