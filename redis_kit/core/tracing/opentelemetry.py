"""Spans of jobs, by the API of OpenTelemetry: without its SDK they are not recorded.

The names and attributes follow its semantic conventions for messaging.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from redis_kit.core.logs.error_text import path_of, text_of
from redis_kit.core.logs.rate_limit import LogRateLimit

LONGEST = 512  # characters of a tracestate
logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()
_propagator = TraceContextTextMapPropagator()


def sent(task: str, queue: str) -> dict[str, str]:
    """Record that a call was enqueued, and return the context of its span for the message; empty without one."""
    carrier: dict[str, str] = {}
    attributes = _attributes(task, queue, "send")
    try:
        with _tracer().start_as_current_span(f"send {queue}", kind=SpanKind.PRODUCER, attributes=attributes):
            _propagator.inject(carrier)
    except Exception:  # of a sampler or processor of the project: the call goes out all the same
        _log_limit.log(logger.exception, "sent", "The span of an enqueued call failed.")
    return {name: value for name, value in carrier.items() if len(value) <= LONGEST}


@contextmanager
def running(
    task: str,
    queue: str,
    job: str,
    attempt: int,
    carrier: Mapping[str, Any],
    *,
    postponed: tuple[type[BaseException], ...],
) -> Iterator[None]:
    """Record a span while a job runs, below that of its message. Exceptions that postpone the job are not failures."""
    texts = {name: value for name, value in carrier.items() if isinstance(value, str)}
    attributes: dict[str, str | int] = {
        **_attributes(task, queue, "process"),
        "messaging.message.id": job,
        "messaging.redis_kit.attempt": attempt,
    }
    with _tracer().start_as_current_span(
        f"process {queue}",
        context=_propagator.extract(texts),
        kind=SpanKind.CONSUMER,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except postponed as error:
            span.set_attribute("messaging.redis_kit.postponed_by", path_of(type(error)))
            raise
        except BaseException as error:
            kind, message = path_of(type(error)).removeprefix("builtins."), text_of(error)
            span.set_status(Status(StatusCode.ERROR, message[:200]))
            span.set_attribute("error.type", kind)
            span.add_event("exception", {"exception.type": kind, "exception.message": message})
            raise


def _attributes(task: str, queue: str, operation: str) -> dict[str, str]:
    return {
        "messaging.system": "redis_kit",
        "messaging.operation.type": operation,
        "messaging.operation.name": operation,
        "messaging.destination.name": queue,
        "messaging.redis_kit.task": task,
    }


def _tracer() -> trace.Tracer:
    return trace.get_tracer("redis_kit")
