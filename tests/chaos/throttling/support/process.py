"""A process that asks for decisions as fast as it can, and prints when the admitted ones were made.

``python -m tests.chaos.throttling.support.process CONFIG`` with JSON: the settings REDIS_KIT, ``throttles`` (arguments
of each), how many ``decisions``, ``tasks`` (0 for sync code), and whether all throttles decide ``together``. Prints a
line when it is ready, starts at a line on its standard input, and prints the moments as JSON.
"""

import asyncio
import json
import logging
import sys
from itertools import cycle, islice

CALLER = "joe"


def main(config):
    from redis_kit.core.client import breaker
    from redis_kit.throttling import Throttle

    breaker.FAILURES = sys.maxsize  # it stays closed, so that each decision asks the server
    throttles = [
        Throttle(on_failure="closed", **given, rates=[tuple(rate) for rate in rates])
        for given in config["throttles"]
        for rates in [given.pop("rates")]
    ]
    for throttle in throttles:
        throttle.peek(CALLER)
    print("ready", flush=True)
    sys.stdin.readline()
    asked = [throttles] if config["together"] else [[throttle] for throttle in throttles]
    turns = islice(cycle(asked), config["decisions"])
    found = {throttle.strategy + throttle.name: [] for throttle in throttles}
    missed = asyncio.run(tasks(turns, found, config["tasks"])) if config["tasks"] else one_by_one(turns, found)
    print(json.dumps({"admitted": found, "missed": missed}), flush=True)


def one_by_one(turns, found):
    """Ask in sync code; return how many decisions the server did not make."""
    from redis_kit.throttling import reserve_all

    missed = 0
    for throttles in turns:
        if len(throttles) == 1:
            missed += note(found, [throttles[0].reserve(CALLER)])
        else:
            missed += note(found, reserve_all([(one, CALLER) for one in throttles]))
    return missed


async def tasks(turns, found, number):
    """Ask in so many tasks at once."""
    return sum(await asyncio.gather(*(task(turns, found) for _ in range(number))))


async def task(turns, found):
    from redis_kit.throttling import areserve_all

    missed = 0
    for throttles in turns:  # shared by all tasks
        if len(throttles) == 1:
            missed += note(found, [await throttles[0].areserve(CALLER)])
        else:
            missed += note(found, await areserve_all([(one, CALLER) for one in throttles]))
    return missed


def note(found, reservations):
    """Keep the moments of what was admitted; return 1 where the server did not decide."""
    if all(reservations):
        for one in reservations:
            found[one.throttle.strategy + one.throttle.name].append(one._outcome.stamp)
    return int(any(one.decision.reason == "outage" for one in reservations))


if __name__ == "__main__":
    from django.conf import settings

    given = json.loads(sys.argv[1])
    logging.getLogger("redis_kit").setLevel(logging.CRITICAL)
    settings.configure(
        SECRET_KEY="only-for-tests-and-as-long-as-a-real-one-is", USE_TZ=True, REDIS_KIT=given["settings"]
    )
    main(given)
