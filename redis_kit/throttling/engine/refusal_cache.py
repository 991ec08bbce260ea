"""Refusals that this process remembers, so that a flood from one caller costs one round trip a second."""

from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from django.core.signals import setting_changed

from redis_kit.throttling.values.decision import Decision

MOST = 10_000  # callers, over all throttles; then the oldest is forgotten

Key = tuple[str, str, int]  # throttle, identity, cost


class _Refusal:
    """A decision, until when it holds, and how often it was given."""

    __slots__ = ("asked", "decision", "given", "until")

    def __init__(self, decision: Decision, asked: float, until: float) -> None:
        self.decision, self.asked, self.until, self.given = decision, asked, until, 0


# Plain dict operations, each of them atomic: no lock that a fork could leave taken.
_refusals: dict[Key, _Refusal] = {}


def remember(key: Key, decision: Decision, *, asked: float, seconds: float) -> None:
    """Keep a refusal for some seconds from when it was asked for: never past the moment at which a call may pass."""
    _refusals.pop(key, None)
    _refusals[key] = _Refusal(decision, asked, asked + min(seconds, decision.retry_after))
    while len(_refusals) > MOST:
        with suppress(RuntimeError, StopIteration):  # another thread changed it meanwhile
            _refusals.pop(next(iter(_refusals)), None)


def recall(key: Key) -> Decision | None:
    """Return the refusal as it would be now, or None when the server has to be asked."""
    found = _refusals.get(key)
    if found is None or (now := monotonic()) >= found.until:
        return None
    found.given += 1
    past = now - found.asked
    allowed, limit, remaining, retry_after, reset_after, rate, reason = found.decision
    return Decision(allowed, limit, remaining, retry_after - past, reset_after - past, rate, reason)


def taken(key: Key, within: float) -> "_Refusal | None":
    """Forget a refusal, and return it where it was given from memory, no longer than so many seconds ago."""
    found = _refusals.pop(key, None)
    return found if found and found.given and found.asked + within > monotonic() else None


def put_back(key: Key, refusal: "_Refusal") -> None:
    """Keep how often a refusal was given for the next one, where the call in between was none."""
    refusal.until = 0.0
    _refusals[key] = refusal


def forget(throttle: str, identity: str) -> None:
    """Drop what is remembered of one caller, whatever the cost of its calls."""
    for key in [key for key in list(_refusals) if key[:2] == (throttle, identity)]:
        _refusals.pop(key, None)


def forget_where(is_meant: Callable[[str, str], bool]) -> None:
    """Drop what is remembered of the throttles and callers of which ``is_meant(throttle, identity)`` is true."""
    for key in list(_refusals):
        if is_meant(*key[:2]):
            _refusals.pop(key, None)


def _forget_all(*, setting: str, **kwargs: Any) -> None:
    if setting == "REDIS_KIT":
        _refusals.clear()


setting_changed.connect(_forget_all, dispatch_uid="redis_kit.throttling.engine.refusal_cache")
