"""Traces: a call is sent with the context of its span, and its task runs in a span below that."""

from collections.abc import Mapping
from typing import Any

from redis_kit.queues.engine.feature import Feature


class Traces(Feature):
    """Spans of calls and of attempts, by the API of OpenTelemetry."""

    name = "traces"
    call = ("redis_kit.queues.features.traces.middleware.Tracing",)

    def call_context(self, task: Any) -> Mapping[str, str] | None:
        """Return the context of the span of a call that is sent now."""
        from redis_kit.core.tracing import spans

        context: Mapping[str, str] | None = spans.tracer().sent(task.module_path, task.queue_name)
        return context
