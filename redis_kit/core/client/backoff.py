"""Pauses before a retry, at random: callers that failed together must not retry together."""

import random


def full_jitter(attempt: int, *, first: float, longest: float) -> float:
    """Return the seconds to wait after a failed attempt, counted from 0: at most ``first``, doubled with each attempt.

    Full jitter, after "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015): from nothing to that time, and
    never more than ``longest``.
    """
    return random.uniform(0, min(longest, first * 2 ** min(attempt, 30)))  # noqa: S311 -- spreads load, hides nothing
