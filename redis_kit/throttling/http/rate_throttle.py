"""What the throttle classes of API frameworks have in common: a Throttle decides, and their own ways stay."""

import math
from contextlib import suppress
from functools import lru_cache
from time import time
from typing import Any, ClassVar

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.core.settings import KitSettings
from redis_kit.core.web.client_address import INVALID, client_address
from redis_kit.throttling.http.responses import Told, deciding
from redis_kit.throttling.strategies.sliding_log import MOST
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.ban import Ban
from redis_kit.throttling.values.decision import Decision
from redis_kit.throttling.values.rates import InvalidRate, Rate, parse

CLOCK = time  # what the frameworks' own classes decide by; a class with another ``timer`` is decided by that


class RateThrottle:
    """A throttle class of an API framework, to put before the framework's own, whose cache is not used any more.

    Attributes beside the framework's are those of a Throttle: ``strategy``, ``on_failure``, ``shadow``, ``ban`` and
    ``using``. Without a strategy it is ``sliding_log``, which counts as the frameworks do, ``sliding_counter`` for
    limits above 10,000, or ``gcra`` for a burst apart from the rate. ``decision`` is the Decision on the last call. The
    throttle is called after its scope, else after its class. One round trip for a call, none while a refusal is
    remembered.
    """

    strategy: str | None = None
    on_failure: str | None = None
    shadow: bool = False
    ban: Ban | None = None
    using: str = "default"

    framework: ClassVar[str]
    decision: Decision | None = None
    _history: Any = ()

    def parse_rate(self, rate: Any) -> Any:
        """Return how many calls the first of the rates allows, and in how many seconds; two None for no limit."""
        rates = self.read(rate)
        return (rates[0].limit, rates[0].period) if rates else (None, None)

    def read(self, rate: Any) -> tuple[Rate, ...]:
        """Return the rates that ``rate`` stands for. Raises InvalidRate."""
        return _parsed(rate) if isinstance(rate, str) else parse(rate)

    def get_ident(self, request: Any) -> Any:
        """Return the client's address: as the kit finds it where ``TRUSTED_PROXIES`` is set, else as the framework."""
        if not conf.section(KitSettings).TRUSTED_PROXIES:
            return super().get_ident(request)  # type: ignore[misc]
        with suppress(ConfigurationError):  # it came past the proxies and over a Unix socket
            return client_address(request)
        return INVALID

    def decide(self: Any, request: Any, *view: Any) -> bool:
        """Count a request if it has room, and say so."""
        self.decision = None
        if self.rate is None:
            return True
        self.key = self.get_cache_key(request, *view)
        if self.key is None or self.num_requests is None:
            return True
        self.now = self.timer()
        limit = self.limit()
        self.decision = decision = limit.hit(self.identity(str(self.key)))
        self.tell(request, Told(limit, decision), *view)
        allowed: bool = self.throttle_success() if decision else self.throttle_failure()
        return allowed

    def throttle_success(self) -> bool:
        """Answer a request that was counted; for subclasses to extend."""
        return True

    def wait(self) -> float | None:
        """Return in how many seconds the refused caller may come again; None where that is never."""
        if self.decision is None or self.decision.allowed:
            found: float | None = super().wait()  # type: ignore[misc]
            return found
        return self.decision.retry_after if math.isfinite(self.decision.retry_after) else None

    @property
    def history(self: Any) -> Any:
        """Return as many times as calls are counted now, for subclasses that count them.

        The times are made up, but for the last one of a refused call: the moment that makes it wait so long.
        """
        if self.decision is None:
            return self._history
        count = max(0, self.num_requests - self.decision.remaining)
        oldest = self.now if self.decision.allowed else self.now - self.duration + self.decision.retry_after
        return [self.now] * (count - 1) + [oldest] * min(count, 1)

    @history.setter
    def history(self, times: Any) -> None:
        self.decision, self._history = None, times

    def limit(self: Any) -> Throttle:
        """Return the throttle that decides, the same for all instances with the same attributes."""
        rates = self._rates()
        name = f"{self.framework}.{self.scope or type(self).__qualname__}"
        options = (name, rates, self.strategy or _fitting(rates), self.on_failure, self.shadow, self.ban, self.using)
        return _shared(*options) if self.timer is CLOCK else _built(*options, clock=self.timer)

    def identity(self: Any, key: str) -> str:
        """Return what the throttle counts by: the framework's ident, or a key that a subclass made."""
        start = f"throttle_{self.scope}_"
        return f"ident:{key.removeprefix(start)}" if key.startswith(start) else f"key:{key}"

    def tell(self, request: Any, told: Told, *view: Any) -> None:
        """Leave what was decided on the request, beside what other throttles decided on it."""
        earlier = getattr(request, "throttles", None)
        request.throttles = [*(earlier if isinstance(earlier, list) else ()), told]
        request.throttle = deciding(request.throttles).decision

    def _rates(self: Any) -> tuple[Rate, ...]:
        numbers = (self.num_requests, self.duration)
        with suppress(InvalidRate):
            rates: tuple[Rate, ...] = self.read(self.rate)
            if (rates[0].limit, rates[0].period) == numbers:
                return rates
        return (Rate(*numbers),)  # a subclass reads rates in its own way, or sets the numbers itself


def _fitting(rates: tuple[Rate, ...]) -> str:
    if any(rate.burst != rate.limit for rate in rates):
        return "gcra"
    return "sliding_counter" if max(rate.limit for rate in rates) > MOST else "sliding_log"


def _built(
    name: str,
    rates: tuple[Rate, ...],
    strategy: str,
    on_failure: str | None,
    shadow: bool,
    ban: Ban | None,
    using: str,
    clock: Any = None,
) -> Throttle:
    return Throttle(
        name, rates, strategy=strategy, on_failure=on_failure, shadow=shadow, ban=ban, clock=clock, using=using
    )


# The frameworks build an instance for each request, or ask one for all.
_shared = lru_cache(maxsize=1000)(_built)
_parsed = lru_cache(maxsize=1000)(parse)
