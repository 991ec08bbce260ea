"""How many records a server has."""

from collections import Counter

from redis_kit.core import connections, flow
from redis_kit.logs.inspection import read_levels


def levels():
    """Return the numbers of stored records by level. A test may begin in one hour and end in the next."""
    counted = Counter()
    for hour in flow.run(read_levels(2), connections.client("default", "worker")):
        counted.update(hour)
    return {level: count for level, count in counted.items() if count}
