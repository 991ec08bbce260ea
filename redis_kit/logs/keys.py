"""The keys of logs. All are in one slot, so that one script stores a batch."""

from redis_kit.core import conf
from redis_kit.core.keys import encode
from redis_kit.core.settings import KitSettings

HOUR = 3600  # seconds
OTHER = "other"  # in place of a fingerprint beyond the limit
OTHER_GROUP = "(other)"  # of loggers beyond the limit
DROPPED = "dropped"  # beside the levels


def batch(writer: str) -> str:
    """Return the number of the last batch that was stored of a process."""
    return _key(f"batch:{writer}")


def groups() -> str:
    """Return the sorted set of the groups of loggers, by the time of their last record."""
    return _key("groups")


def recent(level: str, group: str) -> str:
    """Return the list of the last records of a level and a group of loggers, the latest first."""
    return _key(f"recent:{level}:{encode(group)}")


def counts(hour: int) -> str:
    """Return the sorted set of the fingerprints of an hour since 1970, by number of records."""
    return _key(f"hour:{hour}")


def levels(hour: int) -> str:
    """Return the hash with the number of records of each level in an hour since 1970, and of those dropped."""
    return _key(f"levels:{hour}")


def message(fingerprint: str) -> str:
    """Return the hash of a fingerprint: ``first`` seen, what it is ``about``, and its latest ``record``."""
    return _key(f"message:{fingerprint}")


def _key(part: str) -> str:
    return f"{conf.section(KitSettings).PREFIX}:{{logs}}:{part}"
