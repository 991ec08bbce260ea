"""Refusals that this process remembers, so that a flood from one identity costs one round trip a second."""

import math
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from redis_kit.core import conf
from redis_kit.throttling.values.decision import Decision

LIMIT = 10_000  # refusals, over all throttles; beyond that the oldest one is dropped

CacheKey = tuple[str, str, int]  # id of the throttle, identity, cost


class Refusal:
    """A refusal, when it was asked for, until when it holds, and how often it was repeated from the cache."""

    __slots__ = ("asked_at", "decision", "repeats", "until")

    def __init__(self, decision: Decision, asked_at: float, until: float) -> None:
        self.decision, self.asked_at, self.until, self.repeats = decision, asked_at, until, 0


# Plain dict operations, each of them atomic: there is no lock that a fork could leave locked.
_refusals: dict[CacheKey, Refusal] = {}


def remember(key: CacheKey, decision: Decision, *, asked_at: float, seconds: float) -> None:
    """Keep a refusal for some seconds after it was asked for, but not beyond the time when a call may pass."""
    _refusals.pop(key, None)
    _refusals[key] = Refusal(decision, asked_at, asked_at + min(seconds, decision.retry_after))
    while len(_refusals) > LIMIT:
        with suppress(RuntimeError, StopIteration):  # another thread changed the dict
            _refusals.pop(next(iter(_refusals)), None)


def recall(key: CacheKey, most_repeats: float = math.inf) -> Decision | None:
    """Return the refusal with its times as of now; None if the server has to be asked.

    It has to be asked, too, if it counts no ban yet and was repeated ``most_repeats`` times.
    """
    refusal = _refusals.get(key)
    if refusal is None or (now := monotonic()) >= refusal.until:
        return None
    if refusal.repeats >= most_repeats and refusal.decision.reason != "banned":
        return None
    refusal.repeats += 1
    age = now - refusal.asked_at
    allowed, limit, remaining, retry_after, reset_after, rate, reason = refusal.decision
    return Decision(allowed, limit, remaining, retry_after - age, reset_after - age, rate, reason)


def pop(key: CacheKey, within: float) -> Refusal | None:
    """Remove a refusal. Return it if it was repeated, and asked for within these seconds."""
    refusal = _refusals.pop(key, None)
    return refusal if refusal and refusal.repeats and refusal.asked_at + within > monotonic() else None


def put_back(key: CacheKey, refusal: Refusal) -> None:
    """Keep the number of repeats for the next refusal, after a call that was not refused."""
    refusal.until = 0.0
    _refusals[key] = refusal


def forget(throttle_id: str, identity: str) -> None:
    """Remove the refusals of one identity, at any cost."""
    for key in [key for key in list(_refusals) if key[:2] == (throttle_id, identity)]:
        _refusals.pop(key, None)


def forget_where(matches: Callable[[str, str], bool]) -> None:
    """Remove the refusals for which ``matches(throttle_id, identity)`` is true."""
    for key in list(_refusals):
        if matches(*key[:2]):
            _refusals.pop(key, None)


conf.on_change(_refusals.clear)
