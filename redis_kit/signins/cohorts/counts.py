"""The number of users who signed in on days or in days in a row, and of those who come back.

A question writes nothing on the server.
"""

import operator
import struct
from collections.abc import Sequence
from datetime import date, timedelta
from functools import reduce
from itertools import accumulate
from math import ceil
from typing import NamedTuple

from redis_kit.core import dates, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.core.values.sequences import batched
from redis_kit.signins import keys
from redis_kit.signins.cohorts.segments import DAY, FIRST, Part, read_joined
from redis_kit.signins.days import today

COUNT = scripts.load("redis_kit.signins", "count_active")
BUCKETS_AT_ONCE = 8  # in one round trip, so that not all bitmaps are in memory at the same time


class ActiveDay(NamedTuple):
    """A day and the number of users who signed in on it, or in the week or the month that ends on it."""

    day: date
    users: int


def by_day(model: str, days: Sequence[date]) -> Flow[list[ActiveDay]]:
    """Return the users of each of these days. The server counts them."""
    parts = [keys.active_part(day) for day in days]
    packed = yield Batch([COUNT(keys.in_bucket(tag, parts)) for tag in keys.tags(model)])
    by_bucket = [struct.unpack(f"<{len(parts)}I", each) for each in packed]
    return [ActiveDay(day, sum(users)) for day, users in zip(days, zip(*by_bucket, strict=True), strict=True)]


def by_windows(model: str, days: Sequence[date], windows: Sequence[int]) -> Flow[list[list[ActiveDay]]]:
    """Return for each window, a number of days in a row, the users in those that end on each day.

    The days follow each other. This process joins their bitmaps: the server would have to store each union.
    """
    earlier = max(windows) - 1
    read = [days[0] - timedelta(ago) for ago in range(earlier, 0, -1)] + list(days)
    users = yield from read_joined([Part(DAY, day) for day in read], keys.tags(model))
    return [
        [
            ActiveDay(day, reduce(operator.or_, users[at - window + 1 : at + 1]).bit_count())
            for at, day in enumerate(days, earlier)
        ]
        for window in windows
    ]


class Cohort(NamedTuple):
    """The users whose first sign-in was on a day, or in the week that begins then, and how many of them came back.

    ``partial`` is True if the last of its days or weeks goes on, or is not all in the range: its number may grow.
    """

    day: date
    size: int
    retained: list[int]
    partial: bool


class Grid(NamedTuple):
    """The question: the days of cohorts, all days, and how they are put together."""

    cohort_days: list[date]
    days: list[date]
    period: int
    rolling: bool

    @classmethod
    def of(cls, start: date, end: date, until: date, period: int, rolling: bool) -> "Grid":
        """Return the question. Raises InvalidValue for other periods, and unless it has 1 to 366 days."""
        if isinstance(period, bool) or period not in (1, 7):
            raise InvalidValue(f"period is {period!r}; it must be 1 for days or 7 for weeks.")
        return cls(dates.between(start, end), dates.between(start, max(end, until)), period, rolling)

    def is_partial(self) -> bool:
        """Return whether the last period ends after the last day, or has not ended."""
        last = self.days[0] + timedelta(ceil(len(self.days) / self.period) * self.period - 1)
        return last > self.days[-1] or last >= today()


def cohorts(model: str, grid: Grid) -> Flow[list[Cohort]]:
    """Return the cohorts of all users."""
    firsts = [Part(FIRST, day) for day in grid.cohort_days]
    actives = [Part(DAY, day) for day in grid.days]
    tags, tables = keys.tags(model), []
    for some in batched(tags, BUCKETS_AT_ONCE):
        users = yield from read_joined([*firsts, *actives], some)
        new, active = _periods(users[: len(firsts)], grid), _periods(users[len(firsts) :], grid)
        tables.append(_table(new, active, rolling=grid.rolling))
    rows = [[sum(cells) for cells in zip(*row, strict=True)] for row in zip(*tables, strict=True)]
    starts, partial = grid.cohort_days[:: grid.period], grid.is_partial()
    return [Cohort(day, size, retained, partial) for day, (size, *retained) in zip(starts, rows, strict=True)]


def _periods(days: Sequence[int], grid: Grid) -> list[int]:
    return [reduce(operator.or_, some) for some in batched(days, grid.period)]


def _table(new: Sequence[int], active: Sequence[int], *, rolling: bool) -> list[list[int]]:
    """Return a row for each cohort: its size, and how many were active in each period from its own on."""
    if rolling:
        active = [*accumulate(reversed(active), operator.or_)][::-1]
    return [
        [users.bit_count(), *((users & later).bit_count() for later in active[at:])] for at, users in enumerate(new)
    ]
