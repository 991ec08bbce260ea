"""The options of ``REDIS_KIT["LOCKS"]``."""

from dataclasses import dataclass
from typing import Literal

from redis_kit.core.conf import Section


@dataclass(frozen=True)
class LockSettings(Section):
    """The options of ``REDIS_KIT["LOCKS"]``."""

    name = "LOCKS"
    ranges = {"TIMEOUT": (0.1, 86_400)}
    policies = {"closed": "locks count as held by others"}

    #: Timeout of a lease in seconds, if the lock or semaphore does not state one.
    TIMEOUT: float = 30.0
    #: What happens while Redis is unavailable.
    ON_FAILURE: Literal["raise", "closed"] = "raise"
    #: Dotted path of a function without arguments that says what the caller works on, such as the ID of its request.
    #: It is called each time a lock is acquired outside of queue jobs. Others see its answer as part of the holder.
    HOLDER: str = ""
