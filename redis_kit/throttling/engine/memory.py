"""What a process remembers: refusals, and buckets for while the server is unavailable."""

import math
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic, monotonic_ns

from redis_kit.core import conf
from redis_kit.core.values.rates import Rate
from redis_kit.throttling.settings import ThrottlingSettings
from redis_kit.throttling.strategies import GCRA
from redis_kit.throttling.values import Decision

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


def forget(matches: Callable[[str, str], bool]) -> None:
    """Remove the refusals for which ``matches(throttle_id, identity)`` is true."""
    for key in list(_refusals):
        if matches(*key[:2]):
            _refusals.pop(key, None)


conf.on_change(_refusals.clear)


IDENTITIES = 10_000  # per throttle; beyond that the identity with the oldest call is dropped
THROTTLES = 1000  # by name and rates; beyond that the oldest one is dropped

_lock = threading.Lock()
_by_throttle: dict[str, "LocalBuckets"] = {}


def buckets(throttle_id: str, rates: Sequence[Rate]) -> "LocalBuckets":
    """Return the buckets of a throttle, shared by all objects for the same throttle."""
    with _lock:
        shared = _by_throttle.get(throttle_id)
        if shared is None:
            shared = _by_throttle[throttle_id] = LocalBuckets(rates)
            if len(_by_throttle) > THROTTLES:
                del _by_throttle[next(iter(_by_throttle))]
    return shared


class LocalBuckets:
    """The strategy gcra in this process, on its monotonic clock.

    The limit is divided by ``PROCESSES``; each process allows at least one call.
    """

    def __init__(self, rates: Sequence[Rate]) -> None:
        self._rates = rates
        self._levels: dict[str, tuple[int, list[int]]] = {}

    def decide(self, identity: str, cost: int, *, consume: bool) -> Decision:
        """Decide on one call."""
        gcra = GCRA(self._rates, share=conf.section(ThrottlingSettings).PROCESSES)
        cost = min(cost, *(bucket.limit for bucket in gcra.buckets))
        with _lock:
            now = monotonic_ns() // 1000
            then, levels = self._levels.get(identity, (now, [0] * len(gcra.buckets)))
            pairs = list(zip(gcra.buckets, levels, strict=True))
            levels = [max(0, level - (now - then) * bucket.drain) for bucket, level in pairs]
            filled = [level + cost * bucket.price for bucket, level in zip(gcra.buckets, levels, strict=True)]
            allowed = all(level <= bucket.capacity for bucket, level in zip(gcra.buckets, filled, strict=True))
            if allowed and consume:
                levels = filled
                self._levels.pop(identity, None)
                self._levels[identity] = now, levels
                if len(self._levels) > IDENTITIES:
                    del self._levels[next(iter(self._levels))]
        return gcra.decision(allowed, now, levels, cost)

    def forget(self, identity: str) -> None:
        """Empty the buckets of one identity."""
        self._levels.pop(identity, None)


def _clear() -> None:
    with _lock:
        _by_throttle.clear()


def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()


conf.on_change(_clear)
os.register_at_fork(after_in_child=_new_lock)
