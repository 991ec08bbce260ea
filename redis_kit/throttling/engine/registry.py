"""The throttles that this process has built."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Generic

from redis_kit.throttling.engine.base import AnyThrottle

LIMIT = 1000  # throttles that the dashboard can list; beyond that the oldest one is dropped


class Registry(Generic[AnyThrottle]):
    """Throttles by connection and name: those of one name on two connections have nothing in common."""

    def __init__(self) -> None:
        self._throttles: dict[tuple[str, str], AnyThrottle] = {}

    def add(self, throttle: AnyThrottle) -> None:
        """Add a throttle, in place of an earlier one with its connection and name."""
        self._throttles.pop((throttle.using, throttle.name), None)
        self._throttles[throttle.using, throttle.name] = throttle
        if len(self._throttles) > LIMIT:
            self._throttles.pop(next(iter(self._throttles)), None)

    def throttles(self) -> list[AnyThrottle]:
        """Return the throttles, sorted by name."""
        return by_name(self._throttles.copy().values())

    def clear(self) -> None:
        """Remove all throttles."""
        self._throttles.clear()


def by_name(throttles: Iterable[AnyThrottle]) -> list[AnyThrottle]:
    """Return the last throttle of each connection and name, sorted by name."""
    last = {(throttle.name, throttle.using): throttle for throttle in throttles}
    return [throttle for _, throttle in sorted(last.items(), key=itemgetter(0))]
