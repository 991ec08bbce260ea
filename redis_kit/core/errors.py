"""The errors that cross components. "No" is a return value; an error is what the caller must not miss."""

from django.core.exceptions import ImproperlyConfigured


class RedisKitError(Exception):
    """Base of every error that the kit raises."""

    __repr__ = Exception.__repr__  # errors of redis-py, which some are too, don't show their text


class ConfigurationError(RedisKitError, ImproperlyConfigured):
    """A setting is wrong; the message names it, what is allowed, and the nearest right name."""


class InvalidName(RedisKitError, ValueError):
    """A name can't be used: not text, empty, over 512 bytes of UTF-8, or no valid Unicode."""


class InvalidValue(RedisKitError, ValueError):
    """An argument is out of its range; nothing was sent to the server."""


class RedisFailure(RedisKitError):
    """The server did not do what was asked: base of the four reasons below."""


class RedisUnavailable(RedisFailure):
    """The server can't be reached, is too slow, or can't serve now.

    ``indeterminate`` is True where the command had left this process, so that a write may have happened.
    """

    def __init__(self, message: str, *, indeterminate: bool = False) -> None:
        super().__init__(message)
        self.indeterminate = indeterminate


class PermissionDenied(RedisFailure):
    """The server refused the credentials, a command or a key; repeating can't help."""


class OutOfMemory(RedisFailure):
    """The server is at ``maxmemory`` and refuses writes that add data."""


class KeyConflict(RedisFailure):
    """A key of the kit holds another type: something else wrote to it. Nothing was changed."""
