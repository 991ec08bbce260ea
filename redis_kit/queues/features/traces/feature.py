"""Traces: a call is sent with the context of its span, and its task runs in a span below that."""

from redis_kit.queues.engine.feature import Feature


class Traces(Feature):
    """Spans of calls and of attempts, by the API of OpenTelemetry."""

    name = "traces"
    call = ("redis_kit.queues.features.traces.middleware.Tracing",)
