"""Sends messages to the broker of Celery, and returns when it has taken them.

Celery's ``send_task()`` would note each id for its result, on a connection that keeps them all: here nobody waits.
"""

import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import Any

from celery import Celery, _state
from django.utils.module_loading import import_string

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.queues.errors import NotTaken
from redis_kit.queues.features.celery.broker import LINKS, Link, Outcomes
from redis_kit.queues.features.celery.stored_message import TaskCall
from redis_kit.queues.settings import QueueSettings

OPTION = "REDIS_KIT['QUEUES']['CELERY_APP']"
HINT = f"Import it in the package of your project, as Celery's guide for Django shows, or name it in {OPTION}."


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

    @property
    def takes_many(self) -> bool:
        """Return whether many messages cost the broker one round trip."""
        with suppress(Exception):  # a wrong URL is an error when something is sent
            return self.kind in LINKS
        return False

    def prepare(self) -> None:
        """Open a connection, so that the first message does not wait for it."""
        link = self._link()
        link.prepare()
        self._release(link)

    def publish(self, call: TaskCall) -> None:
        """Send the call of a task, and return when the broker has it. Raises NotTaken."""
        (error,) = self.publish_many([call])
        if error:
            raise error

    def publish_many(self, calls: Sequence[TaskCall]) -> list[Exception | None]:
        """Send calls of tasks. Return None for each that the broker has, else its error, which may be NotTaken."""
        try:
            link = self._link()
        except Exception as error:  # it does not connect: a wrong URL, or a library that is missing
            unusable = NotTaken("The broker of Celery can't be used; see the setting for its URL.")
            unusable.__cause__ = error
            return [unusable] * len(calls)
        outcomes, begun, in_doubt = Outcomes(), len(calls), None
        try:
            link.send(calls, outcomes)
        except Exception as error:
            link.close()
            in_doubt = link.explained(error)
            if not getattr(in_doubt, "unavailable", False):
                begun = max(1, link.begun)  # the others can be sent on a new connection
        except BaseException:
            link.close()  # what was sent is not known
            raise
        else:
            self._release(link)
        answers = [outcomes.get(place, in_doubt) for place in range(begun)]
        return answers + self.publish_many(calls[begun:]) if calls[begun:] else answers

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
                return LINKS.get(self.kind, Link)(self.app)
            if link.is_alive():
                return link
            link.close()

    def _release(self, link: Link) -> None:
        with self._lock:
            self._free.append(link)


def project_app() -> Any:
    """Return the app that the setting names, else the one that was loaded. Raises ConfigurationError."""
    if path := conf.section(QueueSettings).CELERY_APP:
        return _named(path)
    app = _state.get_current_app()
    if app.main == "default" and not app.set_as_current:  # Celery made it, as there was none
        raise ConfigurationError(f"There is no Celery app in this process. {HINT}")
    return app


def _named(path: str) -> Any:
    try:
        app = import_string(path)
    except ImportError as error:
        raise ConfigurationError(f"{OPTION} is {path!r}, which can't be imported: {error}.") from error
    if not isinstance(app, Celery):
        raise ConfigurationError(f"{OPTION} is {path!r}, which is not a Celery app but {type(app).__name__}.")
    return app


def send_tick(name: str, args: list[Any], kwargs: dict[str, Any], *, id: str, queue: str) -> None:
    """Send a call, and return when the broker has it. ``queue`` is "" for the one that Celery chooses.

    Raises ConfigurationError without a Celery app, and NotTaken.
    """
    _schedule_publisher().publish(TaskCall(name, args, kwargs, id, {"queue": queue} if queue else {}))


@cache
def _schedule_publisher() -> Publisher:
    return Publisher(project_app())


def _forget() -> None:
    """Close the connections to the broker, which may be another one from now on."""
    if _schedule_publisher.cache_info().currsize:
        _schedule_publisher().close()
    _schedule_publisher.cache_clear()


conf.on_change(_forget)
