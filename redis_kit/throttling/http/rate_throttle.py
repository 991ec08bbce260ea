"""The base of the throttle classes for API frameworks: a Throttle decides, the interface stays the framework's."""

import math
from contextlib import suppress
from functools import lru_cache
from time import time
from typing import Any, ClassVar

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError, InvalidRate, InvalidValue
from redis_kit.core.settings import KitSettings
from redis_kit.core.text import similar
from redis_kit.core.values.rates import Rate, parse
from redis_kit.core.web.client_address import INVALID, client_address
from redis_kit.throttling.http.responses import Verdict, decisive
from redis_kit.throttling.identity import Shape
from redis_kit.throttling.strategies import LARGEST
from redis_kit.throttling.throttles import Throttle
from redis_kit.throttling.values import Ban, Decision

CLOCK = time  # the frameworks' default; a class with another ``timer`` is decided by that timer
OPTIONS = ("strategy", "on_failure", "shadow", "ban", "using")
MISSPELT = 0.85  # "strategi" is; "strategies", an attribute of a project's own, is not
SHAPES: dict[Shape, None] = {(("ident:",),): None, (("key:",),): None}  # of identity()


class RateThrottle:
    """The base of a throttle class, to put before the framework's class, whose cache is then unused.

    Further attributes are those of a Throttle: ``strategy``, ``on_failure``, ``shadow``, ``ban`` and ``using``. The
    default strategy is ``sliding_log``, which counts as the frameworks do. It is ``sliding_counter`` for limits above
    10,000, and ``gcra`` for rates with a burst. ``decision`` is the Decision on the last call. The throttle has the
    name of its scope, else of its class. A call takes one round trip, or none while a refusal is remembered.
    """

    strategy: str | None = None
    on_failure: str | None = None
    shadow: bool = False
    ban: Ban | None = None
    using: str = "default"

    framework: ClassVar[str]
    decision: Decision | None = None
    _history: Any = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Raise InvalidValue for an attribute that is nearly the name of an option, since it would do nothing."""
        super().__init_subclass__(**kwargs)
        for name in dir(cls):
            if name not in OPTIONS and similar(name, OPTIONS, MISSPELT):
                raise InvalidValue(conf.unknown(cls.__qualname__, name, [*OPTIONS]).text)

    def parse_rate(self, rate: Any) -> Any:
        """Return limit and seconds of the first rate; ``(None, None)`` for no limit."""
        rates = self.read(rate)
        return (rates[0].limit, rates[0].period) if rates else (None, None)

    def read(self, rate: Any) -> tuple[Rate, ...]:
        """Return the rates that ``rate`` stands for. Raises InvalidRate."""
        return _parsed(rate) if isinstance(rate, str) else parse(rate)

    def get_ident(self, request: Any) -> Any:
        """Return the client's address: by ``TRUSTED_PROXIES`` if it is set, else as the framework finds it."""
        if not conf.section(KitSettings).TRUSTED_PROXIES:
            return super().get_ident(request)  # type: ignore[misc]
        with suppress(ConfigurationError):  # it came over a Unix socket, not through a proxy
            return client_address(request)
        return INVALID

    def decide(self: Any, request: Any, *view: Any) -> bool:
        """Count a request and return whether it is allowed."""
        self.decision = None
        if self.rate is None:
            return True
        self.key = self.get_cache_key(request, *view)
        if self.key is None or self.num_requests is None:
            return True
        self.now = self.timer()
        throttle = self.throttle()
        self.decision = decision = throttle.hit(self.identity(str(self.key)))
        self.annotate(request, Verdict(throttle, decision), *view)
        allowed: bool = self.throttle_success() if decision else self.throttle_failure()
        return allowed

    def throttle_success(self) -> bool:
        """Return True for a request that was counted. Subclasses may extend it."""
        return True

    def wait(self) -> float | None:
        """Return in how many seconds a refused client may retry; None if it never may."""
        if self.decision is None or self.decision.allowed:
            seconds: float | None = super().wait()  # type: ignore[misc]
            return seconds
        return self.decision.retry_after if math.isfinite(self.decision.retry_after) else None

    @property
    def history(self: Any) -> Any:
        """Return one time for each call that is counted now, for subclasses that read them.

        The times are not real, except the last one after a refusal, from which the framework computes the wait.
        """
        if self.decision is None:
            return self._history
        count = max(0, self.num_requests - self.decision.remaining)
        oldest = self.now if self.decision.allowed else self.now - self.duration + self.decision.retry_after
        return [self.now] * (count - 1) + [oldest] * min(count, 1)

    @history.setter
    def history(self, times: Any) -> None:
        self.decision, self._history = None, times

    def throttle(self: Any) -> Throttle:
        """Return the throttle that decides. Instances with the same attributes share it."""
        rates = self._rates()
        name = f"{self.framework}.{self.scope or type(self).__qualname__}"
        options = {option: getattr(self, option) for option in OPTIONS}
        options["strategy"] = self.strategy or _default_strategy(rates)
        if self.timer is CLOCK:
            return _shared_throttle(name, rates, **options)
        return _throttle(name, rates, clock=self.timer, **options)

    def identity(self: Any, key: str) -> str:
        """Return the identity to count: the framework's ident, or a key that a subclass made."""
        start = f"throttle_{self.scope}_"
        return f"ident:{key.removeprefix(start)}" if key.startswith(start) else f"key:{key}"

    def annotate(self, request: Any, verdict: Verdict, *view: Any) -> None:
        """Add a ``Verdict`` to ``request.throttles``, and set ``request.throttle``."""
        earlier = getattr(request, "throttles", None)
        request.throttles = [*(earlier if isinstance(earlier, list) else ()), verdict]
        request.throttle = decisive(request.throttles).decision

    def _rates(self: Any) -> tuple[Rate, ...]:
        numbers = (self.num_requests, self.duration)
        with suppress(InvalidRate):
            rates: tuple[Rate, ...] = self.read(self.rate)
            if (rates[0].limit, rates[0].period) == numbers:
                return rates
        return (Rate(*numbers),)  # a subclass has its own grammar, or sets the numbers itself


def _default_strategy(rates: tuple[Rate, ...]) -> str:
    if any(rate.burst != rate.limit for rate in rates):
        return "gcra"
    return "sliding_counter" if max(rate.limit for rate in rates) > LARGEST else "sliding_log"


def _throttle(name: str, rates: tuple[Rate, ...], **options: Any) -> Throttle:
    throttle = Throttle(name, rates, **options)
    throttle.identity_shapes.update(SHAPES)
    return throttle


# Some frameworks build an instance for each request, others use one for all.
_shared_throttle = lru_cache(maxsize=1000)(_throttle)
_parsed = lru_cache(maxsize=1000)(parse)
