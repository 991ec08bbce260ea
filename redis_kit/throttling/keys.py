"""The keys of throttles."""

from typing import NamedTuple


class ThrottleKeys(NamedTuple):
    """The keys of a throttle and one identity, in the order in which decide.lua takes them.

    The first two belong to the identity, the others to all identities of the throttle together.
    """

    state: str
    standing: str
    override: str
    counts: str
    offenders: str
    rules: str
    latest: str


SHARED = ThrottleKeys._fields[2:]
DEMAND = "demand"  # in shadow mode: how many calls identities want in a period
WRITTEN = "written"  # with ThrottledLogins: whether the server accepts writes


def tally_key(keys: ThrottleKeys) -> str:
    """Return the key of the calls that an identity wants in this period, in shadow mode."""
    return f"{keys.state}d"
