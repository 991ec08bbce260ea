"""Refusals that this process remembers, so that a flood from one caller costs one round trip a second."""

from contextlib import suppress
from time import monotonic
from typing import Any

from django.core.signals import setting_changed

from redis_kit.throttling.decision import Decision

MOST = 10_000  # callers, over all throttles; then the oldest is forgotten

Key = tuple[str, str, int]  # throttle, identity, cost

# Plain dict operations, each of them atomic: no lock that a fork could leave taken.
_refusals: dict[Key, tuple[float, float, Decision]] = {}


def remember(key: Key, decision: Decision, *, asked: float, seconds: float) -> None:
    """Keep a refusal for some seconds from when it was asked for: never past the moment at which a call may pass."""
    _refusals.pop(key, None)
    _refusals[key] = (asked + min(seconds, decision.retry_after), asked, decision)
    while len(_refusals) > MOST:
        with suppress(RuntimeError, StopIteration):  # another thread changed it meanwhile
            _refusals.pop(next(iter(_refusals)), None)


def recall(key: Key) -> Decision | None:
    """Return the refusal as it would be now, or None when the server has to be asked."""
    found = _refusals.get(key)
    if found is None or (now := monotonic()) >= found[0]:
        return None
    past, decision = now - found[1], found[2]
    return Decision(
        False,
        decision.limit,
        decision.remaining,
        decision.retry_after - past,
        decision.reset_after - past,
        decision.rate,
    )


def forget(throttle: str, identity: str) -> None:
    """Drop what is remembered of one caller, whatever the cost of its calls."""
    for key in [key for key in list(_refusals) if key[:2] == (throttle, identity)]:
        _refusals.pop(key, None)


def _forget_all(*, setting: str, **kwargs: Any) -> None:
    if setting == "REDIS_KIT":
        _refusals.clear()


setting_changed.connect(_forget_all, dispatch_uid="redis_kit.throttling.memory")
