"""The keys of logs. All are in one slot, so that one script stores a batch; see scripts/store.lua."""

from redis_kit.core import conf
from redis_kit.core.keys import encode
from redis_kit.core.settings import KitSettings

HOUR = 3600  # seconds
RETENTION = 48  # hours for which numbers and messages can be read
DAYS = 7  # for which lists and totals are stored after their last record
GROUPS = "groups"  # the groups of loggers
RECENT = "recent"  # and a level, perhaps with a group: the last records
COUNTS, LEVELS = "hour", "levels"  # and an hour since 1970: its records by fingerprint, and by level
TOTALS = "totals"  # the records of all hours, by level
MESSAGE = "message"  # and a fingerprint: what it is about
DROPPED = "dropped"  # beside the levels of an hour
BATCH = "batch"  # and a process: the number of its last batch that was stored


def key(part: str, *names: str | int) -> str:
    """Return a key."""
    return ":".join([f"{conf.section(KitSettings).PREFIX}:{{logs}}:{part}", *(encode(str(name)) for name in names)])
