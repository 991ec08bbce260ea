"""Safe text and errors in logs, and a limit to how often the same line is logged."""

from redis_kit.core.logs.filters import SafeText

__all__ = ["SafeText"]
