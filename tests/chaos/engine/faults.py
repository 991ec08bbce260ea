"""Faults one after another: which ones and in which order, a seed decides."""

import contextlib
import itertools
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

Kind = TypeVar("Kind")
TRIES = 4  # to start a server, each for some seconds: a busy machine reads a long file for long


class Faults:
    """Injects faults of named kinds in an order, with a calm before each, and counts them."""

    def __init__(
        self,
        kinds: Mapping[str, Callable[[], object]],
        order: Iterable[str],
        *,
        chance: Random,
        calm: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.kinds, self.chance, self.calm = kinds, chance, calm
        self.count: Counter[str] = Counter()
        self._order = iter(order)

    def next(self) -> str:
        """Wait for the calm to end, and inject a fault; return its kind, or "" when the order is at its end."""
        time.sleep(self.chance.uniform(*self.calm))
        if kind := next(self._order, ""):
            self.kinds[kind]()
            self.count[kind] += 1
        return kind

    def __str__(self) -> str:
        return (
            ", ".join(f"{count} {kind}" for kind, count in sorted(self.count.items()) if kind != "none") or "no faults"
        )


def weighted(chance: Random, weights: Mapping[str, float]) -> Iterator[str]:
    """Yield kinds by their weights, for ever."""
    while True:
        yield from chance.choices(list(weights), list(weights.values()))


def rounds(chance: Random, kinds: Sequence[Kind]) -> Iterator[Kind]:
    """Yield rounds of all kinds, each in another order, for ever."""
    while True:
        yield from chance.sample(kinds, len(kinds))


in_turn = itertools.cycle


def restart(server: Any, away: float = 0.0) -> None:
    """Kill a server, and start it again after some seconds."""
    server.stop()
    time.sleep(away)
    for _ in range(TRIES - 1):
        with contextlib.suppress(AssertionError):
            server.start()
            return
    server.start()


def kill(*pids: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to processes, which may have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
