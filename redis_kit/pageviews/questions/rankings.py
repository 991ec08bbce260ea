"""Lists of pages, objects and sources, the most viewed ones first, as flows."""

import time
from typing import Any
from urllib.parse import unquote

from redis_kit.core.flow import Flow
from redis_kit.core.steps import Call
from redis_kit.pageviews import keys, periods
from redis_kit.pageviews.questions.values import Trend

LEAST_TREND = 0.01  # views; what weighs less is not listed


def top(name: str, period: str, n: int) -> Flow[list[tuple[str, int]]]:
    """Return the most viewed pages or keys of a day, a week or a month."""
    return [(unquote(member), views) for member, views in (yield from members(name, period, n))]


def members(name: str, period: str, n: int, *, start: int = 0) -> Flow[list[tuple[str, int]]]:
    """Return the most viewed pages or keys of a day, a week or a month from a place on, encoded."""
    reply = yield Call("ZRANGE", keys.top(name, period), start, start + n - 1, "REV", "WITHSCORES")
    return [(member.decode(), int(score)) for member, score in _pairs(reply)]


def trending(name: str, n: int) -> Flow[list[Trend]]:
    """Return the pages or keys whose views, weighed by their age, are the most."""
    reply = yield Call("ZRANGE", keys.trending(name), 0, n - 1, "REV", "WITHSCORES")
    now = time.time()
    trends = [
        Trend(unquote(member.decode()), 2 ** min((float(score) - now) / periods.TRENDING_HALF_LIFE, 64))
        for member, score in _pairs(reply)
    ]
    return [trend for trend in trends if trend.score >= LEAST_TREND]


def sources(key: str, n: int) -> Flow[list[tuple[str, int]]]:
    """Return the sources of the most views in one of the bounded lists."""
    reply = yield Call("ZRANGE", key, 0, n - 1, "REV", "WITHSCORES")
    return [(member.decode(errors="replace"), int(score)) for member, score in _pairs(reply)]


def _pairs(reply: list[Any]) -> list[tuple[bytes, bytes]]:
    return list(zip(reply[::2], reply[1::2], strict=True))
