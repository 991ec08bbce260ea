"""Buckets of this process alone, for while the server is away."""

import os
import threading
from collections.abc import Sequence
from time import monotonic_ns

from redis_kit.core import conf
from redis_kit.throttling.component import ThrottleSettings
from redis_kit.throttling.strategies.gcra import GCRA
from redis_kit.throttling.values.decision import Decision
from redis_kit.throttling.values.rates import Rate

MOST = 10_000  # callers of one throttle; then the one that came last the longest ago starts anew

_lock = threading.Lock()


SETS = 1000  # throttles, by name and rates; then the one first used is forgotten

_sets: dict[str, "LocalBuckets"] = {}


def buckets(identity: str, rates: Sequence[Rate]) -> "LocalBuckets":
    """Return the buckets of a throttle: the same for every object that stands for it."""
    with _lock:
        found = _sets.get(identity)
        if found is None:
            found = _sets[identity] = LocalBuckets(rates)
            if len(_sets) > SETS:
                del _sets[next(iter(_sets))]
    return found


class LocalBuckets:
    """What the strategy gcra does on the server, in this process and on its monotonic clock.

    The limit is shared out among ``PROCESSES``; each admits one call at least.
    """

    def __init__(self, rates: Sequence[Rate]) -> None:
        self._rates = rates
        self._levels: dict[str, tuple[int, list[int]]] = {}

    def decide(self, identity: str, cost: int, *, consume: bool) -> Decision:
        """Decide on one call."""
        gcra = GCRA(self._rates, share=conf.section(ThrottleSettings).PROCESSES)
        cost = min(cost, *(meter.limit for meter in gcra.meters))
        with _lock:
            now = monotonic_ns() // 1000
            then, levels = self._levels.get(identity, (now, [0] * len(gcra.meters)))
            pairs = list(zip(gcra.meters, levels, strict=True))
            levels = [max(0, level - (now - then) * meter.drain) for meter, level in pairs]
            filled = [level + cost * meter.price for meter, level in zip(gcra.meters, levels, strict=True)]
            allowed = all(level <= meter.capacity for meter, level in zip(gcra.meters, filled, strict=True))
            if allowed and consume:
                self._keep(identity, now, levels := filled)
        return gcra.decision(allowed, now, levels, cost)

    def forget(self, identity: str) -> None:
        """Empty the buckets of one caller."""
        self._levels.pop(identity, None)

    def _keep(self, identity: str, now: int, levels: list[int]) -> None:
        self._levels.pop(identity, None)
        self._levels[identity] = (now, levels)
        if len(self._levels) > MOST:
            del self._levels[next(iter(self._levels))]


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
