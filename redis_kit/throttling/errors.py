"""Exceptions of throttles."""

from redis_kit.core.errors import InvalidValue


class InvalidRate(InvalidValue):
    """A rate does not follow the grammar, or one of its numbers is out of range. The message quotes the grammar."""
