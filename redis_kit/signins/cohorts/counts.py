"""The number of users who signed in on days, or in days in a row. A question writes nothing on the server."""

import operator
import struct
from collections.abc import Sequence
from datetime import date, timedelta
from functools import reduce
from typing import NamedTuple

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.signins import keys
from redis_kit.signins.cohorts.segments import DAY, Part, read_joined

COUNT = scripts.load("redis_kit.signins", "count_active")


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
        [ActiveDay(day, _union(users[at - window + 1 : at + 1])) for at, day in enumerate(days, earlier)]
        for window in windows
    ]


def _union(days: Sequence[int]) -> int:
    return reduce(operator.or_, days).bit_count()
