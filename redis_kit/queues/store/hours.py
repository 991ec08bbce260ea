"""The numbers of a queue by hour: added up from those by minute, which last for 72 hours."""

from redis_kit.core.scripts import ScriptCall
from redis_kit.queues.store.calls import QueueScript

KEPT = 90 * 24  # hours
AT_ONCE = 12  # hours that one call adds up, of 71 at most
FOLD_HOURS, GET_HOURS = map(QueueScript, ("fold_hours", "get_hours"))


def fold(base: str) -> ScriptCall:
    """Return the step that adds up the minutes of some past hours; its reply is how many hours are left."""
    return FOLD_HOURS(base, AT_ONCE, KEPT)


def get(base: str, count: int) -> ScriptCall:
    """Return the step that reads the numbers of some hours, the present one among them."""
    return GET_HOURS(base, count)
