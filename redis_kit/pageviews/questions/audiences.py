"""Visitors of the last minutes, and visitors that two pages have in common, as flows."""

import math
from datetime import date, timedelta

from redis_kit.core import scripts
from redis_kit.core.flow import Flow, single
from redis_kit.core.gather import gather
from redis_kit.core.steps import Batch, Call
from redis_kit.pageviews import keys, periods
from redis_kit.pageviews.questions.numbers import identities, is_distinct
from redis_kit.pageviews.questions.values import STANDARD_ERROR, Overlap

UNION = scripts.load("redis_kit.pageviews", "union")
MINUTES = 6  # the present one, and the five before


def online(name: str) -> Flow[int]:
    """Return the number of visitors of the present minute and the five before it."""
    now = periods.now()
    minutes = [periods.minute_of(now - timedelta(minutes=ago)) for ago in range(MINUTES)]
    count: int = yield Call("PFCOUNT", *[keys.visitors(name, minute) for minute in minutes])
    return count


def overlap(first: str, second: str, days: list[date], *, is_cluster: bool) -> Flow[Overlap]:
    """Return the visitors in common: |A| + |B| - |A or B|. One round trip that writes nothing.

    In a Cluster two: it has both pages in two slots, so the sketches of one are merged and sent to the other.
    """
    if is_cluster:
        flows = [single(_union(second, days, b"")), single(Batch(identities(days)))]
        (_, there, sketch), kinds = yield from gather(flows)
        union, here, _ = yield _union(first, days, sketch)
    else:
        own, others = _sketches(first, days), _sketches(second, days)
        counts = [Call("PFCOUNT", *sketches) for sketches in (own, others, own + others)]
        here, there, union, *kinds = yield Batch([*counts, *identities(days)])
    common = min(max(here + there - union, 0), here, there)
    error = STANDARD_ERROR * math.hypot(here, there, union)
    return Overlap(common, round(error), here, there, union, is_distinct(days, kinds))


def _union(name: str, days: list[date], other: bytes) -> scripts.ScriptCall:
    return UNION([keys.union(name), *_sketches(name, days)], [other])


def _sketches(name: str, days: list[date]) -> list[str]:
    return [keys.visitors(name, period) for period in periods.sketches(days)]
