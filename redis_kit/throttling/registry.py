"""The throttles that this process has built."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redis_kit.throttling.throttles import Throttle

MOST = 1000  # throttles that the dashboard knows; then the oldest name is forgotten

_registered: dict[str, "Throttle"] = {}


def registered() -> list["Throttle"]:
    """Return the throttles that this process has built, the last of each name, in the order of their names."""
    return [throttle for _, throttle in sorted(_registered.copy().items())]


def register(throttle: "Throttle") -> None:
    """Remember a throttle under its name."""
    _registered.pop(throttle.name, None)
    _registered[throttle.name] = throttle
    if len(_registered) > MOST:
        _registered.pop(next(iter(_registered)), None)
