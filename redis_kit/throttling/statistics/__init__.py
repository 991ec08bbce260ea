"""How many calls throttles allow and refuse."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.throttling.statistics.counters import (
        ThrottleCalls,
        arecent,
        athrottle_history,
        recent,
        throttle_history,
    )

__all__ = ["ThrottleCalls", "arecent", "athrottle_history", "recent", "throttle_history"]

__getattr__, __dir__ = lazily(
    __name__, {"counters": ("ThrottleCalls", "arecent", "athrottle_history", "recent", "throttle_history")}
)
