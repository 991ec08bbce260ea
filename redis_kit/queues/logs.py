"""Log lines of jobs, for their pages on the dashboard. Imports neither models nor a client: ``LOGGING`` names it."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.queues.features.logs.handler import JobLogHandler

__all__ = ["JobLogHandler"]

__getattr__, __dir__ = lazily(__name__, {"handler": ("JobLogHandler",)}, home="redis_kit.queues.features.logs")
