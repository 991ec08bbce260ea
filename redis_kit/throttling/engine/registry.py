"""The throttles that this process has built."""

from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redis_kit.throttling.throttles.throttle import Throttle

MOST = 1000  # throttles that the dashboard knows; then the oldest name is forgotten

# By connection and name: throttles of the same name on two connections have nothing in common.
_registered: dict[tuple[str, str], "Throttle"] = {}


def by_name(throttles: Iterable["Throttle"]) -> list["Throttle"]:
    """Return the last throttle of each connection and name, sorted by name."""
    found = {(throttle.name, throttle.using): throttle for throttle in throttles}
    return [throttle for _, throttle in sorted(found.items(), key=itemgetter(0))]


def registered() -> list["Throttle"]:
    """Return the throttles that this process has built, the last of each connection and name, sorted by name."""
    return by_name(_registered.copy().values())


def register(throttle: "Throttle") -> None:
    """Remember a throttle under its connection and name."""
    _registered.pop((throttle.using, throttle.name), None)
    _registered[throttle.using, throttle.name] = throttle
    if len(_registered) > MOST:
        _registered.pop(next(iter(_registered)), None)
