"""Numbers, times and jobs in what a worker logs."""

from collections.abc import Sequence

from redis_kit.core import terminal

NAMED = 5  # jobs in one line of the log
MINUTES = 120.0  # seconds from which on a time is told in minutes


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number of things in words: ``1 job``, ``2 jobs``, ``2 processes``."""
    return f"1 {one}" if number == 1 else f"{number} {several or one + 's'}"


def running(number: int) -> str:
    """Return how many jobs run, in words."""
    return f"{counted(number, 'job')} {'is' if number == 1 else 'are'} running" if number else "no job is running"


def named(ids: Sequence[str]) -> str:
    """Return the ids of jobs, the first five of them: ``'a', 'b' and 3 more``; "" where none has a name."""
    shown = [ascii(id) for id in ids if id][:NAMED]
    more = len(ids) - len(shown)
    return f"{', '.join(shown)}{f' and {more} more' if more else ''}" if shown else ""


def lasting(seconds: float) -> str:
    """Return a time in words: ``90.5 s``, ``6 min 44 s``, ``24 h``."""
    if seconds < MINUTES:
        return f"{seconds:.1f} s"
    words = terminal.duration(seconds if seconds < 3600 else round(seconds / 60) * 60)
    for rest in (" 0 s", " 0 min", " 0 h"):
        words = words.removesuffix(rest)
    return words
