"""The identities that a throttle refuses most often."""

from typing import NamedTuple

from redis_kit.core.flow import Flow
from redis_kit.core.steps import Call
from redis_kit.core.values.numbers import whole_number
from redis_kit.throttling.engine.base import BaseThrottle

LIMIT = 100  # identities that a throttle counts


class Offender(NamedTuple):
    """An identity and how often it was refused: its hash, and what ``OFFENDERS`` allows to store of it.

    Refusals are counted for a day from the first one. With more than 100 identities the counts are estimates that are
    never too low (Metwally's space saving, 2005).
    """

    identity_hash: str
    shown: str
    refusals: int


def read(throttle: BaseThrottle, limit: int) -> Flow[list[Offender]]:
    """Return the identities that were refused most often. One round trip. Raises InvalidValue."""
    whole_number("limit", limit, (1, LIMIT))
    flat = yield Call("ZREVRANGE", throttle.keys_of("").offenders, 0, LIMIT - 1, "WITHSCORES")
    by_hash: dict[str, Offender] = {}
    for entry, refusals in zip(flat[::2], flat[1::2], strict=True):
        identity_hash, _, shown = entry.decode().partition(" ")
        # For a day after a change of OFFENDERS an identity has two entries.
        other = by_hash.get(identity_hash, Offender(identity_hash, shown, 0))
        by_hash[identity_hash] = other._replace(
            shown=other.shown or shown, refusals=other.refusals + int(float(refusals))
        )
    return sorted(by_hash.values(), key=lambda offender: -offender.refusals)[:limit]
