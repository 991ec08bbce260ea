"""The errors that cross components. "No" is a return value; an error is what the caller must not miss."""

from django.core.exceptions import ImproperlyConfigured

NO_NUMBER = ("value is not an integer", "would overflow")  # what a server says of a counter that something else wrote


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
    """The server did not do what was asked: base of the reasons below."""


class RedisUnavailable(RedisFailure):
    """The server can't be reached, is too slow, or can't serve now.

    ``indeterminate`` is True where the command had left this process, so that a write may have happened. The methods
    that write say what a repeat then does; where it may do something twice, a note on the error says so, too.
    """

    def __init__(self, message: str, *, indeterminate: bool = False) -> None:
        super().__init__(message)
        self.indeterminate = indeterminate


class PoolExhausted(RedisFailure):
    """All connections of this process were in use, and none came free in time. Nothing was sent.

    No outage: the server may be well, so neither the circuit breaker nor the failure policy ``open`` answers it.
    """


class PermissionDenied(RedisFailure):
    """The server refused the credentials, a command or a key; repeating can't help."""


class AuthenticationFailed(PermissionDenied):
    """The server, or all Sentinels that answer, want a password, or refuse the one that the connection gives."""


class CommandFailed(RedisFailure):
    """The server answered with an error that none of the others stands for; the message has its text."""


class OutOfMemory(RedisFailure):
    """The server is at ``maxmemory`` and refuses writes that add data."""


class KeyConflict(RedisFailure):
    """A key of the kit holds another type: something else wrote to it. Nothing was changed."""
