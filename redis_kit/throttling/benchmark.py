"""The operations of throttles that ``rk_bench`` measures."""

from collections.abc import Iterator
from functools import partial

from redis_kit.core.component import Operation
from redis_kit.throttling.throttles.throttle import Throttle


def operations(using: str) -> Iterator[Operation]:
    """Yield a hit that is allowed. One round trip."""
    throttle = Throttle("throttle", rates="1000000/s", using=using)
    yield Operation("hit a throttle", partial(throttle.hit, "caller"))
