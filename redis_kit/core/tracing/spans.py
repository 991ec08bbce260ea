"""Where components say what is to be traced. Nothing is traced, or imported, unless ``TRACING`` is on."""

import sys
from typing import Any

from redis_kit.core import conf
from redis_kit.core.settings import KitSettings


def tracer() -> Any:
    """Return the module with the functions sent() and running() if ``TRACING`` is on, else None."""
    if not conf.section(KitSettings).TRACING:
        return None
    from redis_kit.core.tracing import opentelemetry

    return opentelemetry


def ids() -> dict[str, str]:
    """Return ``trace_id`` and ``span_id`` of the span that runs here; empty without one. Imports nothing."""
    loaded = sys.modules.get("opentelemetry.trace")
    if loaded is None:
        return {}
    context = loaded.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
