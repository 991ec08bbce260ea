"""Times in the notation of cron, by the package ``cronsim``."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from redis_kit.core.errors import ConfigurationError
from redis_kit.core.text import shortened
from redis_kit.queues.errors import InvalidSchedule

if TYPE_CHECKING:
    from cronsim import CronSim

FIELDS = "minute (0-59) hour (0-23) day of the month (1-31, L) month (1-12) day of the week (0-7, SUN-SAT)"
GRAMMAR = (
    f"cron has five fields: {FIELDS}; each is *, a number, a list such as 1,15, a range such as 1-5, or a step such as "
    "*/10. For instance '0 4 * * *' is every day at 04:00"
)
SPARE = 2  # times: around a change of the clocks, cronsim counts differently when it goes back
MISSING = "cron= needs the package cronsim: pip install 'django-redis-kit[cron]'. every= works without it."


@dataclass(frozen=True)
class Cron:
    """The times of a cron expression in a time zone.

    A time that a change of the clocks skips is at the first moment after the change. A time of a fixed hour that comes
    twice counts at first only; if the minute or the hour begins with ``*``, times go on through both hours.
    """

    expression: str
    timezone: str

    def after(self, moment: int) -> int | None:
        """See Times."""
        return next((time for time in self._from(moment) if time > moment), None)

    def until(self, moment: int, count: int) -> list[int]:
        """See Times."""
        back = self._from(moment + 60_000, reverse=True)  # it begins at a full minute
        oldest = [moment, *islice(back, count + SPARE)][-1]
        times: list[int] = []
        for time in self._from(oldest - 60_000):
            if time > moment:
                break
            times.append(time)
        return times[: -count - 1 : -1]

    def _from(self, moment: int, *, reverse: bool = False) -> Iterator[int]:
        zone = ZoneInfo(self.timezone)
        start = datetime.fromtimestamp(moment / 1000, UTC if zone.key == "UTC" else zone)
        for time in simulated(self.expression, start, reverse=reverse):
            yield round(time.timestamp() * 1000)


@lru_cache(maxsize=1024)
def check(expression: str) -> None:
    """Raise InvalidSchedule unless a text is a cron expression that has a time, ConfigurationError without cronsim."""
    try:
        first = next(simulated(expression, datetime.now(UTC)), None)
    except ConfigurationError:
        raise
    except Exception as error:  # CronSimError, and what its parser meets in odd text
        reason = str(error) or type(error).__name__
        raise InvalidSchedule(f"cron is {shortened(expression)}: {reason}. {GRAMMAR}.", "cron") from error
    if first is None:
        raise InvalidSchedule(f"cron is {shortened(expression)}, which has no time in the next 50 years.", "cron")


def simulated(expression: str, start: datetime, *, reverse: bool = False) -> "CronSim":
    """Return an iterator over the times after a start, or before it. Raises ConfigurationError without cronsim."""
    try:
        from cronsim import CronSim
    except ImportError as error:
        raise ConfigurationError(MISSING) from error
    return CronSim(expression, start, reverse=reverse)
