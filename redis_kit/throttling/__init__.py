"""Throttles: limits on how often something may happen, decided on the server in one round trip."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.core.errors import InvalidRate
    from redis_kit.core.values.rates import Rate
    from redis_kit.throttling.engine.reservation import Reservation
    from redis_kit.throttling.http.decorator import throttle
    from redis_kit.throttling.http.mixin import ThrottleMixin
    from redis_kit.throttling.http.policies import policy
    from redis_kit.throttling.rules import Rule
    from redis_kit.throttling.signals import throttled
    from redis_kit.throttling.statistics.shadow_report import ashadow_report, shadow_report
    from redis_kit.throttling.strategies.base import Strategy
    from redis_kit.throttling.throttles.hit_all import ahit_all, areserve_all, hit_all, reserve_all
    from redis_kit.throttling.throttles.throttle import Throttle
    from redis_kit.throttling.values.ban import Ban
    from redis_kit.throttling.values.decision import Decision

__all__ = [
    "Ban",
    "Decision",
    "InvalidRate",
    "Rate",
    "Reservation",
    "Rule",
    "Strategy",
    "Throttle",
    "ThrottleMixin",
    "ahit_all",
    "areserve_all",
    "ashadow_report",
    "hit_all",
    "policy",
    "reserve_all",
    "shadow_report",
    "throttle",
    "throttled",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "values.ban": ("Ban",),
        "values.decision": ("Decision", "Rate"),
        "http.decorator": ("throttle",),
        "http.mixin": ("ThrottleMixin",),
        "http.policies": ("policy",),
        "statistics.shadow_report": ("ashadow_report", "shadow_report"),
        "engine.reservation": ("Reservation",),
        "rules": ("InvalidRate", "Rule"),
        "signals": ("throttled",),
        "strategies.base": ("Strategy",),
        "throttles.throttle": ("Throttle",),
        "throttles.hit_all": ("ahit_all", "areserve_all", "hit_all", "reserve_all"),
    },
)
