"""Throttles: limits on how often something may happen, decided on the server in one round trip."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.throttling.ban import Ban
    from redis_kit.throttling.decision import Decision
    from redis_kit.throttling.decorator import throttle
    from redis_kit.throttling.funnels import Funnel, afunnel, funnel
    from redis_kit.throttling.mixin import ThrottleMixin
    from redis_kit.throttling.policies import named
    from redis_kit.throttling.rates import InvalidRate, Rate
    from redis_kit.throttling.reports import areport, report
    from redis_kit.throttling.reservation import Reservation
    from redis_kit.throttling.rules import Rule
    from redis_kit.throttling.signals import throttled
    from redis_kit.throttling.strategies import Strategy
    from redis_kit.throttling.throttles import Throttle
    from redis_kit.throttling.together import ahit_all, areserve_all, hit_all, reserve_all

__all__ = [
    "Ban",
    "Decision",
    "Funnel",
    "InvalidRate",
    "Rate",
    "Reservation",
    "Rule",
    "Strategy",
    "Throttle",
    "ThrottleMixin",
    "afunnel",
    "ahit_all",
    "areport",
    "areserve_all",
    "funnel",
    "hit_all",
    "named",
    "report",
    "reserve_all",
    "throttle",
    "throttled",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "ban": ("Ban",),
        "decision": ("Decision",),
        "decorator": ("throttle",),
        "funnels": ("Funnel", "afunnel", "funnel"),
        "mixin": ("ThrottleMixin",),
        "policies": ("named",),
        "rates": ("InvalidRate", "Rate"),
        "reports": ("areport", "report"),
        "reservation": ("Reservation",),
        "rules": ("Rule",),
        "signals": ("throttled",),
        "strategies": ("Strategy",),
        "throttles": ("Throttle",),
        "together": ("ahit_all", "areserve_all", "hit_all", "reserve_all"),
    },
)
