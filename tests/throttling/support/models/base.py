"""The base of all models: several rates for one identity, in whole microseconds and fractions of calls."""

from typing import NamedTuple


class Stand(NamedTuple):
    """How one rate stands: whether a call has room, calls left, microseconds until it has room and until all is new."""

    room: bool
    remaining: int
    wait: int
    reset: int


def period(rate):
    """Return a rate's period in microseconds."""
    return round(rate.period * 1_000_000)


class Model:
    """The definition of a strategy, with no thought of speed or of digits."""

    def __init__(self, rates):
        self.rates = list(rates)
        self.reset()

    def hit(self, now, cost=1, *, consume=True):
        """Return whether a call is allowed, and how each rate stands after it."""
        stands = self.stands(now, cost)
        allowed = all(stand.room for stand in stands)
        if consume and (allowed or self.went_back(now)):
            self.take(now, cost if allowed else 0)
            stands = self.stands(now, cost)
        return allowed, stands

    def mark(self):
        """Return what settle() has to know of the moment of a hit."""
        return None
