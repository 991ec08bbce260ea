"""Helpers for a worker's log: numbers, times and jobs in words, and calls whose errors are logged."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from redis_kit.core import terminal
from redis_kit.core.logs.error_text import described, exc_info

Value = TypeVar("Value")
logger = logging.getLogger("redis_kit.worker")

NAMED = 5  # jobs in one line of the log
MINUTES = 120.0  # seconds from which on a time is shown in minutes


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return a number of things in words: ``1 job``, ``2 jobs``, ``2 processes``."""
    return f"1 {singular}" if number == 1 else f"{number} {plural or singular + 's'}"


def running(number: int) -> str:
    """Return how many jobs run, in words."""
    return f"{counted(number, 'job')} {'is' if number == 1 else 'are'} running" if number else "no job is running"


def named(ids: Sequence[str]) -> str:
    """Return the ids of jobs, the first five of them: ``'a', 'b' and 3 more``; "" if none has a name."""
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


def guarded(what: str, call: Callable[[], Value], otherwise: Value) -> Value:
    """Return what a call returns. If it fails, log that and return ``otherwise``: the job must not suffer."""
    try:
        return call()
    except BaseException as error:
        with suppress(BaseException):
            logger.log(logging.ERROR, "%s failed: %s", what, described(error), exc_info=exc_info(error))
        return otherwise
