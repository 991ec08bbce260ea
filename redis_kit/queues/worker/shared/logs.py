"""Helpers for a worker's log: numbers and jobs in words, and calls whose errors are logged."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from redis_kit.core.logs.error_text import described, exc_info

Value = TypeVar("Value")
logger = logging.getLogger("redis_kit.worker")

NAMED = 5  # jobs in one line of the log


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


def guarded(what: str, call: Callable[[], Value], otherwise: Value) -> Value:
    """Return what a call returns. If it fails, log that and return ``otherwise``: the job must not suffer."""
    try:
        return call()
    except BaseException as error:
        with suppress(BaseException):
            logger.log(logging.ERROR, "%s failed: %s", what, described(error), exc_info=exc_info(error))
        return otherwise
