"""Throttles: limits on how often something may happen, decided on the server in one round trip."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.core.errors import InvalidRate as InvalidRate
    from redis_kit.core.values.rates import Rate as Rate
    from redis_kit.throttling.engine.reservation import Reservation as Reservation
    from redis_kit.throttling.http.decorator import throttle as throttle
    from redis_kit.throttling.http.mixin import ThrottleMixin as ThrottleMixin
    from redis_kit.throttling.http.policies import policy as policy
    from redis_kit.throttling.rules import Rule as Rule
    from redis_kit.throttling.signals import throttled as throttled
    from redis_kit.throttling.statistics.shadow_report import ashadow_report as ashadow_report
    from redis_kit.throttling.statistics.shadow_report import shadow_report as shadow_report
    from redis_kit.throttling.strategies.base import Strategy as Strategy
    from redis_kit.throttling.throttles.hit_all import ahit_all as ahit_all
    from redis_kit.throttling.throttles.hit_all import areserve_all as areserve_all
    from redis_kit.throttling.throttles.hit_all import hit_all as hit_all
    from redis_kit.throttling.throttles.hit_all import reserve_all as reserve_all
    from redis_kit.throttling.throttles.throttle import Throttle as Throttle
    from redis_kit.throttling.values.ban import Ban as Ban
    from redis_kit.throttling.values.decision import Decision as Decision

_PUBLIC: dict[str, tuple[str, ...]] = {
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
}
__all__ = [name for names in _PUBLIC.values() for name in names]
__getattr__, __dir__ = lazily(__name__, _PUBLIC)
