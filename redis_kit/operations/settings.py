"""The settings of operations."""

from dataclasses import dataclass

from redis_kit.core.conf import Section


@dataclass(frozen=True)
class OperationsSettings(Section):
    """The options of ``REDIS_KIT["OPERATIONS"]``."""

    name = "OPERATIONS"
    ranges = {"SLOW": (0.001, 60)}

    #: Seconds from which a command in the server's slow log is worth an advice, if it ran within the last hour.
    SLOW: float = 0.1
