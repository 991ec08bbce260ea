"""How long a failed job waits for its next attempt."""

import random

FIRST = 1.0  # seconds, at most, before the second attempt
LONGEST = 900.0


def backoff(attempt: int) -> float:
    """Return the seconds to wait after an attempt: random, up to a limit that doubles with each, 15 minutes at most.

    Full jitter, after "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015): jobs that failed together, as in
    an outage, do not come back together.
    """
    return random.uniform(0, min(LONGEST, FIRST * 2 ** min(attempt - 1, 30)))  # noqa: S311 -- spreads load, hides nothing
