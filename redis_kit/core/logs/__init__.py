"""What is written to logs: text that can't forge lines, errors whose own methods fail, and lines once a minute."""

from redis_kit.core.logs.filters import SafeText

__all__ = ["SafeText"]
