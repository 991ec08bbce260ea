"""The number of users who signed in on days, or in days in a row."""

from datetime import date, timedelta
from typing import NamedTuple

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.signins import keys

COUNT = scripts.load("redis_kit.signins", "count_active")


class ActiveDay(NamedTuple):
    """A day and the number of users who signed in on it, or in the week or the month that ends on it."""

    day: date
    users: int


def counted(model: str, days: list[date], window: int = 1) -> Flow[list[ActiveDay]]:
    """Return for each of these days, which follow each other, the users in as many days in a row as the window."""
    earlier = [days[0] - timedelta(ago) for ago in range(window - 1, 0, -1)]
    parts = [keys.active_part(day) for day in [*earlier, *days]]
    named = [[keys.scratch(tag), *keys.in_bucket(tag, parts)] for tag in keys.tags(model)]
    by_bucket = yield Batch([COUNT(each, [window]) for each in named])
    return [ActiveDay(day, sum(users)) for day, users in zip(days, zip(*by_bucket, strict=True), strict=True)]
