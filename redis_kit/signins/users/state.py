"""The state of a user as it is stored, and what it says."""

import struct
from datetime import date
from typing import NamedTuple

STATE = struct.Struct("<IIIIIiII8s")


class Summary(NamedTuple):
    """Figures of a user without a look at single days. ``first`` is the day of the first sign-in, or None."""

    streak: int
    longest: int
    total: int
    first: date | None


class State(NamedTuple):
    """A stored state without its zone; see scripts/_state.lua."""

    last: int
    streak: int
    longest: int
    total: int
    first: int
    place: int
    frozen: int
    before: int
    token: bytes

    @classmethod
    def of(cls, stored: bytes | None) -> "State | None":
        """Return the state that is stored; None if there is none."""
        return cls(*STATE.unpack_from(stored)) if stored else None


def summarized(stored: bytes | None, today: date) -> Summary:
    """Return the summary of a stored state. A streak goes on up to the day after its last day."""
    state = State.of(stored)
    if state is None:
        return Summary(0, 0, 0, None)
    # After a journey to the west the last day may be tomorrow.
    streak = state.streak if state.last >= today.toordinal() - 1 else 0
    return Summary(streak, state.longest, state.total, date.fromordinal(state.first) if state.first else None)
