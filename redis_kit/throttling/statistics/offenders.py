"""The callers that a throttle refuses most."""

from typing import TYPE_CHECKING, NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Call

if TYPE_CHECKING:
    from redis_kit.throttling.throttles.throttle import Throttle

MOST = 100


class Offender(NamedTuple):
    """A caller, by its hash and by what ``OFFENDERS`` allows to be kept of it, and how often it was refused.

    Counted for a day from the first refusal. Of more than 100 callers the counts are estimates, never too low
    (Metwally's space saving, 2005).
    """

    who: str
    shown: str
    refusals: int


def offenders(throttle: "Throttle", limit: int = 20) -> list[Offender]:
    """Return the callers that were refused most, at most ``limit`` (1 to 100). One round trip.

    Raises InvalidValue, and RedisUnavailable.
    """
    found: list[Offender] = throttle.carry_out(listing(throttle, limit))
    return found


async def aoffenders(throttle: "Throttle", limit: int = 20) -> list[Offender]:
    """See offenders()."""
    found: list[Offender] = await throttle.acarry_out(listing(throttle, limit))
    return found


def listing(throttle: "Throttle", limit: int) -> Flow[list[Offender]]:
    """Return the steps that read them."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST:
        raise InvalidValue(f"limit must be a whole number from 1 to {MOST}, not {limit!r}.")
    flat = yield Call("ZREVRANGE", throttle.key("offenders"), 0, MOST - 1, "WITHSCORES")
    found: dict[str, Offender] = {}
    for label, refusals in zip(flat[::2], flat[1::2], strict=True):
        who, _, shown = label.decode().partition(" ")
        # A caller has two labels for a day after OFFENDERS was changed.
        known = found.get(who, Offender(who, shown, 0))
        found[who] = known._replace(shown=known.shown or shown, refusals=known.refusals + int(float(refusals)))
    return sorted(found.values(), key=lambda one: -one.refusals)[:limit]
