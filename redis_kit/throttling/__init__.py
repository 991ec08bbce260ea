"""Throttles: limits on how often something may happen, decided on the server in one round trip."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.throttling.decision import Decision
    from redis_kit.throttling.decorator import throttle
    from redis_kit.throttling.rates import InvalidRate, Rate
    from redis_kit.throttling.signals import throttled
    from redis_kit.throttling.strategies import Strategy
    from redis_kit.throttling.throttles import Throttle

__all__ = ["Decision", "InvalidRate", "Rate", "Strategy", "Throttle", "throttle", "throttled"]

__getattr__ = lazily(
    __name__,
    {
        "decision": ("Decision",),
        "decorator": ("throttle",),
        "rates": ("InvalidRate", "Rate"),
        "signals": ("throttled",),
        "strategies": ("Strategy",),
        "throttles": ("Throttle",),
    },
)
