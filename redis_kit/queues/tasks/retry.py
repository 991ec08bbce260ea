"""Whether a job has another attempt: how long a failed one waits for it, and which one has waited for too long."""

import inspect
import logging
import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import number, shortened
from redis_kit.queues import validation
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import Expired, GiveUp, Retry
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.validation import Delay

Backoff = Delay | Sequence[Delay] | Callable[[BaseException, Any], Delay | None] | None
ALLOWED = (
    f"None, a delay of 0 to {validation.LONGEST_DELAY:,} seconds or a timedelta, a list or tuple of these, or a "
    "function of the exception and the result that returns one or None"
)
logger = logging.getLogger("redis_kit.worker")


def delay(task: str, backoff: Backoff, job: Job, error: BaseException, result: Any) -> float | None:
    """Return the seconds to wait after a failed attempt, given name and backoff of the task; None to end retries."""
    kind = type(error)  # isinstance() asks the error for its class, which may raise
    if issubclass(kind, GiveUp):
        return None
    if issubclass(kind, Retry) and (given := getattr(error, "delay", None)) is not None:
        return _seconds(given)
    try:
        return _chosen(backoff, job.attempt, error, result)
    except BaseException:  # SystemExit, too: the job must not suffer from it
        logger.exception("The backoff of %s for job %a failed; using the default backoff.", task, job.id)
        return default_delay(job.attempt)


def default_delay(attempt: int) -> float:
    """Return the seconds to wait after an attempt: ``RETRY_BACKOFF``, doubled with each, up to ``RETRY_BACKOFF_MAX``.

    The wait is random, between half of that and all of it: equal jitter, after "Exponential Backoff And Jitter" (AWS
    Architecture Blog, 2015). Jobs that failed together come back apart, and the attempts last for a known time.
    """
    options = conf.section(QueueSettings)
    whole = min(options.RETRY_BACKOFF_MAX, options.RETRY_BACKOFF * 2 ** min(attempt - 1, 30))
    return random.uniform(whole / 2, whole)  # noqa: S311 -- spreads load, hides nothing


def check(backoff: Any) -> None:
    """Raise InvalidValue unless this can be a task's backoff."""
    if backoff is None or (callable(backoff) and _takes_two(backoff)):
        return
    delays = [backoff] if isinstance(backoff, (int, float, timedelta)) else backoff
    if not delays or not isinstance(delays, (list, tuple)):
        raise InvalidValue(f"backoff must be {ALLOWED}, not {shortened(backoff)}.")
    for delay in delays:
        validation.milliseconds(delay, "backoff")


def expired(job: Job, call: Message) -> Expired | None:
    """Return the error of a job that was claimed too late after it was due; None if it was claimed in time.

    The server's clock decides. A job that was running when its worker died had begun in time, so it runs again.
    """
    late = job.claimed - job.due
    if not call.expires or job.crashes or late * 1000 <= call.expires:
        return None
    return Expired(f"it was to begin within {number(call.expires / 1000)} s, and its turn came after {late:.1f} s")


def _chosen(chosen: Backoff, attempt: int, error: BaseException, result: Any) -> float | None:
    if callable(chosen):
        seconds = chosen(error, result)
        return None if seconds is None else _seconds(seconds)
    if chosen is None:
        return default_delay(attempt)
    if isinstance(chosen, Sequence):
        return _seconds(chosen[min(attempt, len(chosen)) - 1])
    return _seconds(chosen)


def _seconds(given: Delay) -> float:
    return validation.milliseconds(given) / 1000


def _takes_two(function: Callable[..., Any]) -> bool:
    if inspect.iscoroutinefunction(function):
        return False
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # a function written in C may have no signature
        return True
    return True
