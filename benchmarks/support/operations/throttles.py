"""Throttles: hits that are counted or refused, and calls about one identity."""

from collections.abc import Callable
from itertools import count
from typing import Any

from benchmarks.support import limiters
from benchmarks.support.limiters import Check
from benchmarks.support.server_cost import Part, Prepared
from benchmarks.support.workers.server import Server
from redis_kit.throttling import Throttle, hit_all

IDENTITIES = 1000  # in turn; each makes few calls within a minute
RATE = "10000/m"
KINDS = ("gcra", "token_bucket", "fixed_window", "sliding_counter", "sliding_log")
GOALS = (
    ("kit: gcra", "throttled-py: gcra", 1.25),
    ("kit: token_bucket", "throttled-py: token_bucket", 1.25),
    ("kit: sliding_log", "limits: moving window", 1.5),
    ("kit: sliding_counter", "limits: sliding window counter", 1.5),
    ("kit: gcra, three rates", "kit: gcra", 1.5),
)


def throttles(server: Server) -> Part:
    """Return all calls of throttles."""
    made = {kind: Throttle(f"bench {kind}", RATE, strategy=kind) for kind in KINDS}
    gcra, three = made["gcra"], Throttle("bench three", f"{RATE}; 300000/h; 2000000/d")
    apart = [Throttle(f"bench {number}", RATE) for number in range(3)]
    checks: dict[str, Check] = {f"kit: {kind}": throttle.hit for kind, throttle in made.items()}
    checks |= {
        "kit: gcra, three rates": three.hit,
        "kit: gcra, three throttles": lambda who: hit_all([(throttle, who) for throttle in apart]),
        "kit: gcra, peek": gcra.peek,
        "kit: gcra, reserve and settle": lambda who: gcra.reserve(who, cost=2).settle(1),
        "kit: gcra, reset of nothing": lambda who: gcra.reset(f"{who} new"),
    }
    peers = limiters.throttled_py(server.url) | limiters.limits(server.url)
    operations: dict[str, Any] = {name: _in_turn(name, check) for name, check in (checks | peers).items()}
    operations |= {
        "kit: gcra, refused": _refused(Throttle("bench refused", "1/d", strategy="gcra")),
        "kit: gcra, reset": _reset(gcra),
        "kit: offenders": gcra.offenders,
    }
    return Part("throttles", operations, GOALS)


def _in_turn(name: str, check: Check) -> Callable[[], object]:
    numbers = count()
    return lambda: check(f"{name}:{next(numbers) % IDENTITIES}")


def _refused(throttle: Throttle) -> Prepared:
    numbers = count()

    def spent(most: int) -> list[str]:
        identities = [f"refused {next(numbers)}" for _ in range(most)]  # new: this process remembers refusals
        for identity in identities:
            throttle.hit(identity)
        return identities

    return Prepared(spent, throttle.hit)


def _reset(throttle: Throttle) -> Prepared:
    def used(most: int) -> list[str]:
        identities = [f"reset {number}" for number in range(most)]
        for identity in identities:
            throttle.hit(identity)
        return identities

    return Prepared(used, throttle.reset)
