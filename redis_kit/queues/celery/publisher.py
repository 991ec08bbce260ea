"""Sends messages to the broker of Celery, and returns when it has taken them.

Celery's ``send_task()`` would note each id for its result, on a connection that keeps them all: here nobody waits.
"""

import contextlib
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from time import monotonic
from typing import Any

from kombu.exceptions import OperationalError

from redis_kit.queues.errors import NotTaken

TIMEOUT = 5.0  # seconds in which the broker has to connect, and to confirm a message
IDLE = 1.0  # seconds after which a connection is looked at before it is used
NO_RETRY = {"max_retries": 0}  # of a connection: the worker tries again, with another job
LIMITS: Mapping[str, Mapping[str, Any]] = {  # what keeps a connection from waiting for ever, by kind of broker
    "amqp": {"confirm_publish": True, "read_timeout": TIMEOUT, "write_timeout": TIMEOUT},
    "redis": {"socket_timeout": TIMEOUT, "socket_connect_timeout": TIMEOUT, "retry_on_timeout": False},
}
RENAMED = {"link": "callbacks", "link_error": "errbacks"}  # in the function that makes a message
OF_MESSAGE = (
    *("group_id", "group_index", "retries", "chord", "link", "link_error", "reply_to", "time_limit", "soft_time_limit"),
    *("root_id", "parent_id", "shadow", "chain", "ignore_result", "replaced_task_nesting", "expires", "origin"),
)


class Link:
    """A connection to the broker."""

    def __init__(self, app: Any) -> None:
        self.connection = app.connection_for_write(connect_timeout=TIMEOUT)
        self.kind = self.connection.transport.driver_type
        self.connection.transport_options.update({**NO_RETRY, **LIMITS.get(self.kind, {})})
        self.producer = app.amqp.Producer(self.connection, auto_declare=False)
        self._used = monotonic()

    def is_alive(self) -> bool:
        """Return whether the broker has kept it open while nothing was sent."""
        if self.kind == "amqp" and monotonic() - self._used > IDLE:
            try:
                self.connection.drain_events(timeout=0.0001)
            except TimeoutError:
                return True
            except Exception:
                return False
        return True

    def send(
        self, app: Any, name: str, args: list[Any], kwargs: dict[str, Any], id: str, given: dict[str, Any]
    ) -> None:
        """Send a message, and return when the broker has it."""
        content = {RENAMED.get(part, part): given.pop(part) for part in OF_MESSAGE if part in given}
        if expires := content.get("expires"):
            given["expiration"] = max(0.0, (datetime.fromisoformat(expires) - app.now()).total_seconds())
        options = app.amqp.router.route(given, name, args, kwargs)
        sent = app.conf.task_send_sent_event
        message = app.amqp.create_task_message(id, name, args, kwargs, create_sent_event=sent, **content, **options)
        for stamp in ["stamped_headers", *(options.get("stamped_headers") or [])]:
            options.pop(stamp, None)
        app.amqp.send_task_message(self.producer, name, message, retry=False, confirm_timeout=TIMEOUT, **options)
        self._used = monotonic()

    def close(self) -> None:
        """Close it, also if it is broken."""
        with contextlib.suppress(Exception):
            self.connection.collect(socket_timeout=0.1)


class Publisher:
    """Sends messages on connections with time limits, on which the broker confirms each. Threads share them."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self._lock = threading.Lock()
        self._free: list[Link] = []  # the last one used comes first

    @cached_property
    def kind(self) -> str:
        """Return the kind of broker, such as "redis" or "amqp". It does not connect."""
        return str(self.app.connection_for_write().transport.driver_type)

    def prepare(self) -> None:
        """Open a connection, so that the first message does not wait for it."""
        link = self._link()
        link.connection.ensure_connection(max_retries=0, timeout=TIMEOUT)
        self._release(link)

    def publish(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, id: str, options: Mapping[str, Any]
    ) -> None:
        """Send the call of a task, and return when the broker has it. Raises NotTaken."""
        try:
            link = self._link()
        except Exception as error:  # it does not connect: a wrong URL, or a library that is missing
            raise NotTaken("The broker of Celery can't be used; see the setting for its URL.") from error
        try:
            link.send(self.app, name, list(args), dict(kwargs), id, dict(options))
        except (OperationalError, OSError, *link.connection.connection_errors) as error:
            link.close()
            raise NotTaken("The broker of Celery does not answer.") from error
        except link.connection.channel_errors as error:
            link.close()
            raise NotTaken("The broker of Celery refused a message.", unavailable=False) from error
        except BaseException:
            link.close()  # what was sent of the message is not known
            raise
        self._release(link)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            links, self._free = self._free, []
        for link in links:
            link.close()

    def _link(self) -> Link:
        while True:
            with self._lock:
                link = self._free.pop() if self._free else None
            if link is None:
                return Link(self.app)
            if link.is_alive():
                return link
            link.close()

    def _release(self, link: Link) -> None:
        with self._lock:
            self._free.append(link)
