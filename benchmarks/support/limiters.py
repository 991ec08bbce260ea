"""Limiters of other packages, as functions of the identity, at 100 calls a minute."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from django.http import HttpRequest
from django.test import RequestFactory

LIMIT = 100  # a minute
Check = Callable[[str], object]


def throttled_py(url: str) -> dict[str, Check]:
    """Return the limiters of throttled-py, by its names."""
    from throttled import RedisStore, Throttled, per_min

    store = RedisStore(server=url)
    kinds = ("fixed_window", "sliding_window", "leaking_bucket", "token_bucket", "gcra")
    made = {kind: Throttled(using=kind, quota=per_min(LIMIT), store=store) for kind in kinds}
    return {f"throttled-py: {kind}": limiter.limit for kind, limiter in made.items()}


def limits(url: str) -> dict[str, Check]:
    """Return the limiters of limits, by its names."""
    from limits import RateLimitItemPerMinute, storage, strategies

    store, item = storage.RedisStorage(url), RateLimitItemPerMinute(LIMIT)
    made = {
        "fixed window": strategies.FixedWindowRateLimiter(store),
        "moving window": strategies.MovingWindowRateLimiter(store),
        "sliding window counter": strategies.SlidingWindowCounterRateLimiter(store),
    }

    def check(limiter: Any) -> Check:
        return lambda caller: limiter.hit(item, caller)

    return {f"limits: {name}": check(limiter) for name, limiter in made.items()}


def rest_framework() -> Check:
    """Return the throttle of Django REST framework, on the default cache."""
    from rest_framework.throttling import SimpleRateThrottle

    class ByCaller(SimpleRateThrottle):
        rate = f"{LIMIT}/min"

        def get_cache_key(self, request: Any, view: object) -> str:
            return f"drf:{request.caller}"

    return lambda caller: ByCaller().allow_request(SimpleNamespace(caller=caller), None)  # type: ignore[arg-type]


def django_ratelimit() -> Check:
    """Return the check of django-ratelimit, on the default cache."""
    from django_ratelimit.core import is_ratelimited

    request = RequestFactory().get("/")

    def who(group: str, request: HttpRequest) -> str:
        return str(request.META["caller"])

    def check(caller: str) -> object:
        request.META["caller"] = caller
        return not is_ratelimited(request, group="bench", key=who, rate=f"{LIMIT}/m", increment=True)

    return check
