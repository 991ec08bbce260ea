"""Messages of Celery that wait in a queue of the kit: as Celery made them, in a form that JSON can hold."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Self

from kombu.entity import Queue as Destination

from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.core.tracing import spans
from redis_kit.queues.engine import message
from redis_kit.queues.engine.message import Message
from redis_kit.queues.settings import CELERY

EMBEDDED = {"callbacks": "link", "errbacks": "link_error", "chain": "chain", "chord": "chord"}  # options
OF_CALLER = ("serializer", "retry", "retry_policy", "timeout", "confirm_timeout")  # rk_worker publishes in its own way


class TaskCall(NamedTuple):
    """A call of a task of Celery, with some options of apply_async()."""

    task: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    id: str
    options: Mapping[str, Any]


class StoredMessage(TaskCall):
    """A message with the options of Kombu's ``publish()``. Its signals are sent where it is made."""

    @classmethod
    def made(cls, app: Any, body: Any, given: Mapping[str, Any]) -> Self:
        """Return what Celery gave to ``publish()``. Raises InvalidValue, ConfigurationError or TypeError."""
        if not isinstance(body, tuple):
            raise ConfigurationError("A delayed call can't be stored with task_protocol 1: only 2 is possible.")
        if given.get("content_type"):
            raise TypeError("content_type can't be set: arguments have that of their serializer.")
        headers = given["headers"]
        task, id = headers["task"], headers["id"]
        if (serializer := given["serializer"]) != "json":
            raise InvalidValue(
                f"A delayed call of {task} can't be stored with the serializer {serializer!r}: only 'json' is "
                f"possible. Pass serializer='json', or set delay_limit to float('inf') to leave delays to Celery."
            )
        args, kwargs, embedded = body
        options = {name: value for name, value in given.items() if name not in OF_CALLER}
        defaults = _defaults(app, task, id)
        options["headers"] = {
            name: value for name, value in headers.items() if name not in defaults or defaults[name] != value
        }
        options["declare"] = [entity.name for entity in given.get("declare") or () if isinstance(entity, Destination)]
        options["exchange"] = getattr(given["exchange"], "name", given["exchange"])
        options |= {EMBEDDED[name]: value for name, value in embedded.items()}
        if options.get("correlation_id") == id:
            del options["correlation_id"]
        if headers.get("expires"):
            options.pop("expiration", None)  # publish() counts it from the hand-over
        return cls(task, args, kwargs, id, {name: value for name, value in options.items() if value is not None})

    def dumps(self, queue: str, job_id: str) -> bytes:
        """Return the body of its job in a queue. Raises what message.dumps() does.

        The id of the job is that of the message, unless it differs from the start: a job whose content is replaced
        keeps its id.
        """
        options = self.options if job_id == self.id else {**self.options, "task_id": self.id}
        tracer = spans.tracer()
        trace = tracer.sent(self.task, queue) if tracer else None
        return message.dumps(self.task, list(self.args), dict(self.kwargs), sink=CELERY, options=options, trace=trace)

    @classmethod
    def loads(cls, call: Message, job_id: str) -> Self:
        """Return the message of a job, with the context of its span as headers, as Celery's instrumentation has it."""
        options = dict(call.options)
        options["headers"] = {**call.trace, **options["headers"]}
        return cls(call.task, call.args, call.kwargs, options.pop("task_id", job_id), options)

    def publish(self, app: Any, producer: Any) -> None:
        """Publish it, without the time until which it waited."""
        options = {"correlation_id": self.id, "reply_to": "", **self.options, "serializer": "json", "retry": False}
        embedded = {name: options.pop(option, None) for name, option in EMBEDDED.items()}
        options["headers"] = headers = {**_defaults(app, self.task, self.id), **options["headers"]}
        options["declare"] = [app.amqp.queues[name] for name in options["declare"]]
        if expires := headers["expires"]:
            options["expiration"] = max(0.0, (datetime.fromisoformat(expires) - app.now()).total_seconds())
        producer.publish((list(self.args), dict(self.kwargs), embedded), **options)


def _defaults(app: Any, task: str, id: str) -> dict[str, Any]:
    """Return the headers of a call without options that do not depend on the process."""
    headers: dict[str, Any] = app.amqp.create_task_message(id, task, (), {}).headers
    del headers["origin"]
    return headers
