"""Sends the calls that are left in the outboxes of the project's databases."""

import logging
from collections.abc import Callable, Sequence
from threading import Event

from django.db import DatabaseError, connections
from django.utils.connection import ConnectionDoesNotExist
from django.utils.timezone import now

from redis_kit.core.errors import RedisFailure
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.queues.database import outbox
from redis_kit.queues.database.relay import relay
from redis_kit.queues.worker.shared.logs import counted
from redis_kit.queues.worker.shared.reconnect import UNAVAILABLE, pause
from redis_kit.queues.worker.shared.worker_queue import PatientQueue, WorkerQueue

logger = logging.getLogger("redis_kit.worker")
EVERY = 5.0  # seconds between two looks of all workers together
TURN = 4500  # ms: a bit less, so that the same worker may look again


class OutboxRelay:
    """Looks at each database every five seconds, in one of all worker processes: the others find the turn taken.

    ``report`` is called with the seconds for which the oldest call has waited that could not be sent; 0 without one.
    """

    def __init__(
        self, aliases: Sequence[str], source: WorkerQueue, stopping: Event, report: Callable[[float], object]
    ) -> None:
        self.aliases, self._source, self._stopping, self._report = aliases, source, stopping, report
        self._failures = 0
        self._log_limit = LogRateLimit()

    def run(self) -> None:
        """Look until the worker stops. After an outage of Redis that is within two seconds."""
        while not self._stopping.wait(self.look()):
            pass

    def look(self) -> float:
        """Send what is left, if it is this worker's turn, and return the seconds until the next look."""
        try:
            for alias in self.aliases:
                if self._source.run_flow(outbox.take_turn(alias, self._source.worker, TURN)):
                    self._relay(alias)
        except UNAVAILABLE:
            self._failures += 1
            return pause(self._failures - 1)
        except RedisFailure as error:
            self._complain("The outbox can't be looked at: %s", error)
        self._failures = 0
        return EVERY

    def _relay(self, alias: str) -> None:
        try:
            relayed = relay(alias, PatientQueue)
        except (DatabaseError, ConnectionDoesNotExist) as error:
            self._complain("The outbox of database %a can't be read: %s", alias, error)
            return
        finally:
            if alias in connections:
                connections[alias].close()  # it is not needed for the next seconds
        if relayed.sent:
            logger.info("Outbox of database %a: sent %s.", alias, counted(relayed.sent, "waiting call"))
        self._report((now() - relayed.oldest).total_seconds() if relayed.oldest else 0.0)

    def _complain(self, *what: object) -> None:
        if self._log_limit.allows(str(what[0])):
            logger.error(*what)
