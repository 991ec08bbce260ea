"""Sends messages to the broker of Celery, which confirms what it has taken. Many messages take one round trip.

Kombu knows batches since 5.7 for Redis only, and does not tell which message of a batch was refused. Celery's
``send_task()`` would note each id for its result, on a connection that keeps them all: here nobody waits.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property, partial
from itertools import pairwise
from threading import Lock
from time import monotonic
from types import SimpleNamespace
from typing import Any

from celery import Celery, _state
from django.utils.module_loading import import_string
from kombu.exceptions import OperationalError

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.queues.errors import NotTaken
from redis_kit.queues.features.celery.stored_message import StoredMessage, TaskCall
from redis_kit.queues.settings import QueueSettings

TIMEOUT = 5.0  # seconds in which the broker has to connect, and to confirm messages
IDLE = 1.0  # seconds after which a connection is looked at before it is used
NO_RETRY = {"max_retries": 0}  # of a connection: the worker tries again, with another job
LIMITS: Mapping[str, Mapping[str, Any]] = {  # what keeps a connection from waiting for ever, by kind of broker
    "amqp": {"confirm_publish": False, "read_timeout": TIMEOUT, "write_timeout": TIMEOUT},  # see AmqpLink
    "redis": {"socket_timeout": TIMEOUT, "socket_connect_timeout": TIMEOUT, "retry_on_timeout": False},
}
OF_MESSAGE = ("expires", "ignore_result")  # options that are not for its publication
DESTINATION = ("queue", "exchange", "routing_key")  # options that tell where a message goes
Destination = tuple[str, ...]
Outcomes = dict[int, Exception | None]  # by the place of a call: None if the broker has it; without one it is in doubt
OPTION = "REDIS_KIT['QUEUES']['CELERY_APP']"
HINT = f"Import it in the package of your project, as Celery's guide for Django shows, or name it in {OPTION}."


class Link:
    """A connection to a broker of any kind, for one thread at a time. ``begun`` is how many of the calls were begun."""

    refusal_closes = True  # it is of no use after the broker has refused a message

    def __init__(self, app: Any) -> None:
        self.app = app
        self.connection = app.connection_for_write(connect_timeout=TIMEOUT)
        self.kind = self.connection.transport.driver_type
        self.connection.transport_options.update({**NO_RETRY, **LIMITS.get(self.kind, {})})
        self.producer = app.amqp.Producer(self.connection, auto_declare=False)
        self._used, self.begun = monotonic(), 0

    def is_alive(self) -> bool:
        """Return whether the broker has kept it open while nothing was sent."""
        return True

    def prepare(self) -> None:
        """Connect."""
        self.connection.ensure_connection(max_retries=0, timeout=TIMEOUT)

    def send(self, calls: Sequence[TaskCall], outcomes: Outcomes) -> None:
        """Send calls, and note what became of each. After an error the connection is of no use any more."""
        self.begun = 0
        self._send(calls, outcomes)
        self._used = monotonic()

    def explained(self, error: Exception) -> Exception:
        """Return NotTaken for an error of the broker, and any other error as it is."""
        if isinstance(error, (OperationalError, OSError, *self.connection.connection_errors)):
            return _caused(NotTaken("The broker of Celery does not answer."), error)
        if isinstance(error, self.connection.channel_errors):
            return _caused(NotTaken("The broker of Celery refused a message.", unavailable=False), error)
        return error

    def close(self) -> None:
        """Close it, also if it is broken."""
        with contextlib.suppress(Exception):
            self.connection.collect(socket_timeout=0.1)

    def _send(self, calls: Sequence[TaskCall], outcomes: Outcomes) -> None:
        for place in self._publish_each(calls, outcomes):
            outcomes.setdefault(place, None)

    def _publish_each(self, calls: Sequence[TaskCall], outcomes: Outcomes) -> Iterator[int]:
        """Publish calls, and yield the place of each. An error after which others can be sent is noted."""
        for place, call in enumerate(calls):
            try:
                self._publish(call, place)
            except Exception as error:
                answer = self.explained(error)
                if isinstance(answer, NotTaken) and (answer.unavailable or self.refusal_closes):
                    raise
                outcomes[place] = answer
            yield place

    def _begin(self, place: int, options: Mapping[str, Any]) -> None:
        """Take note of a message that is published next."""
        self.begun = place + 1

    def _publish(self, call: TaskCall, place: int) -> None:
        if isinstance(call, StoredMessage):
            self._begin(place, call.options)
            call.publish(self.app, self.producer)
            return
        given, args, kwargs = dict(call.options), list(call.args), dict(call.kwargs)
        content = {part: given.pop(part) for part in OF_MESSAGE if part in given}
        if expires := content.get("expires"):
            given["expiration"] = max(0.0, (datetime.fromisoformat(expires) - self.app.now()).total_seconds())
        amqp, content["create_sent_event"] = self.app.amqp, self.app.conf.task_send_sent_event
        options = amqp.router.route(given, call.task, args, kwargs)
        message = amqp.create_task_message(call.id, call.task, args, kwargs, **content, **options)
        self._begin(place, options)
        amqp.send_task_message(self.producer, call.task, message, retry=False, **options)


class RedisLink(Link):
    """Puts all messages into the lists of a Redis in one pipeline, whose replies tell what became of each."""

    refusal_closes = False

    def _send(self, calls: Sequence[TaskCall], outcomes: Outcomes) -> None:
        channel = self.producer.channel
        with channel.conn_or_acquire() as client, client.pipeline(transaction=False) as pipeline:
            with _gathering(channel, client, pipeline):
                ends = [len(pipeline) for _ in self._publish_each(calls, outcomes)]
            replies = pipeline.execute(raise_on_error=False)
        for place, (start, end) in enumerate(pairwise([0, *ends])):
            errors = [reply for reply in replies[start:end] if isinstance(reply, Exception)]
            outcomes.setdefault(place, self.explained(errors[0]) if errors else None)


class AmqpLink(Link):
    """Publishes all messages, and then waits until RabbitMQ has confirmed them.

    The first message of a destination goes alone: a wrong destination closes the channel, and leaves in doubt what was
    not confirmed by then.
    """

    def __init__(self, app: Any) -> None:
        super().__init__(app)
        self._publishes: Any = None
        self._count = 0  # of messages: RabbitMQ confirms them by their number
        self._unconfirmed: dict[int, int] = {}  # places of calls, by the number of the message
        self._outcomes = Outcomes()
        self._proven: set[Destination] = set()
        self._new: Destination | None = None

    def is_alive(self) -> bool:
        """See Link."""
        if monotonic() - self._used > IDLE:
            try:
                self.connection.drain_events(timeout=0.0001)
            except TimeoutError:
                return True
            except Exception:
                return False
        return True

    def _send(self, calls: Sequence[TaskCall], outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._want_confirmations()
        for place in self._publish_each(calls, outcomes):
            if self._new:
                self._wait()
                if outcomes[place] is None:
                    self._proven.add(self._new)
        self._wait()

    def _begin(self, place: int, options: Mapping[str, Any]) -> None:
        destination = tuple(str(getattr(part, "name", part)) for part in map(options.get, DESTINATION))
        self._new = None if destination in self._proven else destination
        if self._new:
            self._wait()
        super()._begin(place, options)

    def _want_confirmations(self) -> None:
        channel = self.producer.channel
        if self._publishes is None:
            channel.confirm_select()
            channel.events["basic_ack"].add(partial(self._confirm, None))
            refused = NotTaken("RabbitMQ refused a message.", unavailable=False)
            channel.events["basic_nack"].add(partial(self._confirm, refused))
            self._publishes, channel.basic_publish = channel.basic_publish, self._count_message

    def _count_message(self, *args: Any, **options: Any) -> Any:
        self._count += 1
        self._unconfirmed[self._count] = self.begun - 1
        return self._publishes(*args, **options)

    def _confirm(self, answer: Exception | None, number: int, multiple: bool) -> None:
        """Take in that a message, or all up to it, was confirmed or refused. A call may have two: one is an event."""
        for each in [other for other in self._unconfirmed if other <= number] if multiple else [number]:
            place = self._unconfirmed.pop(each)
            if answer or place not in self._unconfirmed.values():
                self._outcomes.setdefault(place, answer)

    def _wait(self) -> None:
        deadline = monotonic() + TIMEOUT
        while self._unconfirmed:
            self.connection.drain_events(timeout=max(0.001, deadline - monotonic()))


LINKS = {"redis": RedisLink, "amqp": AmqpLink}


@contextlib.contextmanager
def _gathering(channel: Any, client: Any, pipeline: Any) -> Iterator[None]:
    """Gather in a pipeline what a channel of Redis puts into lists. All else that it asks is answered at once."""
    put = channel._put
    lent = SimpleNamespace(lpush=pipeline.lpush, pipeline=client.pipeline)

    def gather(queue: str, message: Any, **options: Any) -> None:
        channel.conn_or_acquire = lambda client=None: contextlib.nullcontext(lent)
        try:
            put(queue, message, **options)
        finally:
            del channel.conn_or_acquire

    channel._put = gather
    try:
        yield
    finally:
        del channel._put


def _caused(error: NotTaken, cause: Exception) -> NotTaken:
    error.__cause__ = cause
    return error


class Publisher:
    """Sends messages on connections with time limits, on which the broker confirms each. Threads share them."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self._lock = Lock()
        self._free: list[Link] = []  # the last one used comes first

    @cached_property
    def kind(self) -> str:
        """Return the kind of broker, such as "redis" or "amqp". It does not connect."""
        return str(self.app.connection_for_write().transport.driver_type)

    @property
    def takes_many(self) -> bool:
        """Return whether many messages cost the broker one round trip."""
        with contextlib.suppress(Exception):  # a wrong URL is an error when something is sent
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
            return [_caused(unusable, error)] * len(calls)
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
    path = conf.section(QueueSettings).CELERY_APP
    if not path:
        app = _state.get_current_app()
        if app.main == "default" and not app.set_as_current:  # Celery made it, as there was none
            raise ConfigurationError(f"There is no Celery app in this process. {HINT}")
        return app
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
