"""Helpers for a worker's log: jobs in words, and calls whose errors are logged."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from redis_kit.core.logs.error_text import described, exc_info
from redis_kit.core.text import counted

Value = TypeVar("Value")
logger = logging.getLogger("redis_kit.worker")

NAMED = 5  # jobs in one line of the log


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
