"""Throttles: limits on how often something may happen, decided on the server in one round trip."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.core.errors import InvalidRate as InvalidRate
    from redis_kit.core.values.rates import Rate as Rate
    from redis_kit.throttling.engine.decide import Reservation as Reservation
    from redis_kit.throttling.http.policies import policy as policy
    from redis_kit.throttling.http.views import ThrottleMixin as ThrottleMixin
    from redis_kit.throttling.http.views import throttle as throttle
    from redis_kit.throttling.rules import Rule as Rule
    from redis_kit.throttling.signals import throttled as throttled
    from redis_kit.throttling.statistics import ashadow_report as ashadow_report
    from redis_kit.throttling.statistics import shadow_report as shadow_report
    from redis_kit.throttling.strategies import Strategy as Strategy
    from redis_kit.throttling.throttles import Throttle as Throttle
    from redis_kit.throttling.throttles import ahit_all as ahit_all
    from redis_kit.throttling.throttles import areserve_all as areserve_all
    from redis_kit.throttling.throttles import hit_all as hit_all
    from redis_kit.throttling.throttles import reserve_all as reserve_all
    from redis_kit.throttling.values import Ban as Ban
    from redis_kit.throttling.values import Decision as Decision

_PUBLIC: dict[str, tuple[str, ...]] = {
    "values": ("Ban", "Decision", "Rate"),
    "http.views": ("ThrottleMixin", "throttle"),
    "http.policies": ("policy",),
    "statistics": ("ashadow_report", "shadow_report"),
    "engine.decide": ("Reservation",),
    "rules": ("InvalidRate", "Rule"),
    "signals": ("throttled",),
    "strategies": ("Strategy",),
    "throttles": ("Throttle", "ahit_all", "areserve_all", "hit_all", "reserve_all"),
}
__all__ = [name for names in _PUBLIC.values() for name in names]
__getattr__, __dir__ = lazily(__name__, _PUBLIC)
