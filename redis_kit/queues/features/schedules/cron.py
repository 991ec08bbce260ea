"""Times in the notation of cron, by the package ``cronsim``."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
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
FIELD_COUNT = 5  # cronsim takes a sixth one, seconds, in front
DAY = 86_400_000  # ms
COMPARED = 1000  # times, which are enough for each distance of less than a day
MISSING = "cron= needs the package cronsim: pip install 'django-redis-kit[cron]'. every= works without it."


@dataclass(frozen=True)
class Cron:
    """The times of a cron expression in a time zone.

    A time of a fixed minute and hour comes once a day: at first if the clocks show it twice, and at the first moment
    after the change if they skip it. If the minute or the hour begins with ``*``, all times are those that clocks show.
    """

    expression: str
    timezone: str

    def after(self, moment: int) -> int | None:
        """Return the first time later than a moment; None if there is none."""
        return next(self._from(moment), None)

    def _from(self, moment: int) -> Iterator[int]:
        """Yield the times later than a moment."""
        # When clocks go back within a day, times that they show now come again.
        start = min(self._shown(moment), self._shown(moment + DAY) - timedelta(days=1))
        latest = moment
        for time in self._in_order(start):
            if time > latest:
                yield (latest := time)

    def _in_order(self, start: datetime) -> Iterator[int]:
        """Yield the times of what clocks show later than ``start``, and those that come a second time, in order."""
        again: deque[int] = deque()
        for local_time in simulated(self.expression, start):
            for first, *second in filter(None, [self._times_of(local_time)]):
                while again and again[0] < first:
                    yield again.popleft()
                yield first
                again.extend(second)
        yield from again

    def _times_of(self, local_time: datetime) -> list[int]:
        """Return when clocks show a time: two moments if it comes twice."""
        first = local_time.replace(tzinfo=ZoneInfo(self.timezone))
        second = first.replace(fold=1)
        if first.timestamp() <= second.timestamp():
            times = [first] if first.timestamp() == second.timestamp() or self._is_fixed else [first, second]
        else:  # clocks never show it
            times = [self._end_of_gap(first)] if self._is_fixed else []
        return [round(time.timestamp() * 1000) for time in times]

    def _end_of_gap(self, skipped: datetime) -> datetime:
        while skipped.timestamp() > skipped.replace(fold=1).timestamp():
            skipped += timedelta(minutes=1)
        return skipped

    def _shown(self, moment: int) -> datetime:
        """Return what clocks show at a moment, without its zone."""
        return datetime.fromtimestamp(moment / 1000, ZoneInfo(self.timezone)).replace(tzinfo=None)

    @property
    def _is_fixed(self) -> bool:
        return not any(field.startswith("*") for field in self.expression.split()[:2])


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
    if (count := len(expression.split())) != FIELD_COUNT:
        raise InvalidSchedule(f"cron is {shortened(expression)}, which has {count} fields. {GRAMMAR}.", "cron")
    if first is None:
        raise InvalidSchedule(f"cron is {shortened(expression)}, which has no time in the next 50 years.", "cron")


@lru_cache(maxsize=1024)
def shortest_distance(expression: str) -> int:
    """Return the shortest distance of two times in ms, as far as clocks do not change."""
    times = islice(Cron(expression, "UTC")._from(0), COMPARED)
    return min((later - earlier for earlier, later in pairwise(times)), default=DAY * 366)


def simulated(expression: str, start: datetime) -> "CronSim":
    """Return an iterator over the times after a start. Raises ConfigurationError without cronsim.

    Give it no time zone: it steps by hours where clocks change by half an hour.
    """
    try:
        from cronsim import CronSim
    except ImportError as error:
        raise ConfigurationError(MISSING) from error
    return CronSim(expression, start)
