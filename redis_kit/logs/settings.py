"""The settings of logs."""

from dataclasses import dataclass

from redis_kit.core.conf import Section


@dataclass(frozen=True)
class LogSettings(Section):
    """The options of ``REDIS_KIT["LOGS"]``."""

    name = "LOGS"
    ranges = {"RECENT": (1, 1000), "FINGERPRINTS": (1, 10_000)}

    #: The number of records that are stored of each level. A group of loggers has a tenth of it for itself.
    RECENT: int = 300
    #: The number of different messages that are counted in an hour; further ones are counted as ``other``.
    FINGERPRINTS: int = 1000
    #: The connection that stores log records.
    USING: str = "default"
