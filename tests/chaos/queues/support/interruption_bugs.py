"""Bugs that the interruptions must find: each is put in before a run."""

from collections.abc import Callable
from typing import Any

from redis_kit.core.client import pools
from redis_kit.core.errors import RedisKitError
from redis_kit.queues.worker.run import runner, timeouts
from tests.chaos.queues import interrupted_tasks


class _OldTimeout(RedisKitError, TimeoutError):
    """A timeout that looks like a failure of the network."""


def of_the_network() -> None:
    """Let the client take a timeout for an outage."""
    interrupted_tasks.ERRORS["timeout"] = _OldTimeout


def anywhere() -> None:
    """Let a thread be interrupted within the kit's own bookkeeping."""
    timeouts.is_guarded = lambda frame, late=0.0: False  # type: ignore[assignment]


def lost_connections() -> None:
    """Keep a connection that was interrupted."""
    kept: list[Any] = []
    pools.Pool.drop = lambda self, connection: kept.append(connection)  # type: ignore[method-assign]


def lost_outcome() -> None:
    """Leave one failed attempt to the log alone."""
    record, lost = runner.JobRunner.record, [True]

    def forget(self: Any, failure: Any, **how: Any) -> None:
        if not lost or not lost.pop():
            record(self, failure, **how)

    runner.JobRunner.record = forget  # type: ignore[method-assign]


# How it is put in, what is said of it, and how many jobs are to be interrupted.
BUGS: dict[str, tuple[Callable[[], None], str, int]] = {
    "of_the_network": (of_the_network, "failed of something else", 160),
    "anywhere": (anywhere, "Jobs are not done", 2600),  # as one of the places in logging is
    "lost_connections": (lost_connections, "onnections", 160),
    "lost_outcome": (lost_outcome, "Jobs are not done", 160),
}
