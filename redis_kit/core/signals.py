"""Signals about the servers. Components send their own from their own modules."""

import logging
from contextlib import suppress
from typing import Any

from django.dispatch import Signal

logger = logging.getLogger("redis_kit")

# using, error: a connection's circuit breaker opened, so callers are refused without a round trip.
redis_unavailable = Signal()
# using: the breaker closed again.
redis_recovered = Signal()
# component, policy, error: a call was answered by its failure policy; the first of an outage, else once a minute.
failure_policy_applied = Signal()


def send_safely(signal: Signal, sender: Any, **arguments: Any) -> None:
    """Send a signal; the sender goes on, even if a receiver raises an exception.

    An Exception is logged, and the other receivers are called. SystemExit and its like are logged, too, but receivers
    after that one are not called.
    """
    try:
        signal.send_robust(sender, **arguments)
    except BaseException:
        with suppress(BaseException):
            logger.exception("A receiver of a signal was about to end its thread, which goes on.")
