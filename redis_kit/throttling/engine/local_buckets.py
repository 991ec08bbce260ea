"""Buckets in the memory of this process, for while the server is unavailable."""

import os
import threading
from collections.abc import Sequence
from time import monotonic_ns

from redis_kit.core import conf
from redis_kit.core.values.rates import Rate
from redis_kit.throttling.settings import ThrottlingSettings
from redis_kit.throttling.strategies.gcra import GCRA
from redis_kit.throttling.values.decision import Decision

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
                self._store(identity, now, levels := filled)
        return gcra.decision(allowed, now, levels, cost)

    def forget(self, identity: str) -> None:
        """Empty the buckets of one identity."""
        self._levels.pop(identity, None)

    def _store(self, identity: str, now: int, levels: list[int]) -> None:
        self._levels.pop(identity, None)
        self._levels[identity] = (now, levels)
        if len(self._levels) > IDENTITIES:
            del self._levels[next(iter(self._levels))]


def _clear() -> None:
    with _lock:
        _by_throttle.clear()


def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()


conf.on_change(_clear)
os.register_at_fork(after_in_child=_new_lock)
