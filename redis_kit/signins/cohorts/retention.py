"""How many users come back: cohorts by the day or week of the first sign-in, and their sign-ins afterwards."""

import operator
from collections.abc import Sequence
from datetime import date
from functools import reduce
from itertools import accumulate
from typing import NamedTuple

from redis_kit.core import dates
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.values.sequences import batched
from redis_kit.signins import keys
from redis_kit.signins.cohorts.segments import DAY, FIRST, Bitmaps, Part, read

BUCKETS_AT_ONCE = 8  # in one round trip, so that not all bitmaps are in memory at the same time


class Cohort(NamedTuple):
    """The users whose first sign-in was on a day, or in the week that begins then, and how many of them came back."""

    day: date
    size: int
    retained: list[int]


class Grid(NamedTuple):
    """The question: the days of cohorts, all days, and how they are put together."""

    cohort_days: list[date]
    days: list[date]
    period: int
    rolling: bool

    @classmethod
    def of(cls, start: date, end: date, until: date, period: int, rolling: bool) -> "Grid":
        """Return the question. Raises InvalidValue for other periods, and unless it has 1 to 366 days."""
        if period not in (1, 7):
            raise InvalidValue(f"period is {period!r}; it must be 1 for days or 7 for weeks.")
        return cls(dates.between(start, end), dates.between(start, max(end, until)), period, rolling)


def cohorts(model: str, grid: Grid) -> Flow[list[Cohort]]:
    """Return the cohorts of all users."""
    firsts = [Part(FIRST, day) for day in grid.cohort_days]
    actives = [Part(DAY, day) for day in grid.days]
    tags, tables = keys.tags(model), []
    for some in batched(tags, BUCKETS_AT_ONCE):
        buckets = yield from read([*firsts, *actives], some)
        width = max(users.bit_length() for bucket in buckets for users in bucket.values())
        new, active = (_periods(_side_by_side(parts, buckets, width), grid) for parts in (firsts, actives))
        tables.append(_table(new, active, rolling=grid.rolling))
    rows = [[sum(cells) for cells in zip(*row, strict=True)] for row in zip(*tables, strict=True)]
    starts = grid.cohort_days[:: grid.period]
    return [Cohort(day, size, retained) for day, (size, *retained) in zip(starts, rows, strict=True)]


def _side_by_side(parts: Sequence[Part], buckets: Sequence[Bitmaps], width: int) -> list[int]:
    """Return the users of several buckets as one number: joining few large numbers is faster than many small ones."""
    return [reduce(operator.or_, (bucket[part] << at * width for at, bucket in enumerate(buckets))) for part in parts]


def _periods(days: Sequence[int], grid: Grid) -> list[int]:
    return [reduce(operator.or_, some) for some in batched(days, grid.period)]


def _table(new: Sequence[int], active: Sequence[int], *, rolling: bool) -> list[list[int]]:
    """Return a row for each cohort: its size, and how many were active in each period from its own on."""
    if rolling:
        active = [*accumulate(reversed(active), operator.or_)][::-1]
    return [
        [users.bit_count(), *((users & later).bit_count() for later in active[at:])] for at, users in enumerate(new)
    ]
