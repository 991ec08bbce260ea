"""The errors that cross components. "No" is a return value; an error is for something the caller must not miss."""

from django.core.exceptions import ImproperlyConfigured

NO_NUMBER = ("value is not an integer", "would overflow")  # of a server, for a counter that something else wrote


class RedisKitError(Exception):
    """Base of every error that the kit raises."""

    __repr__ = Exception.__repr__  # errors of redis-py, which some are too, don't show their text


class ConfigurationError(RedisKitError, ImproperlyConfigured):
    """A setting is wrong. The message names it, the values that are allowed, and the name that was probably meant."""


class InvalidName(RedisKitError, ValueError):
    """A name can't be used: not text, empty, over 512 bytes of UTF-8, or no valid Unicode."""


class InvalidValue(RedisKitError, ValueError):
    """An argument is out of its range. Nothing was sent to the server."""


class InvalidRate(InvalidValue):
    """A rate does not follow the grammar, or one of its numbers is out of range. The message quotes the grammar."""


class RedisFailure(RedisKitError):
    """The server did not carry out a command. Base of the reasons below."""


class RedisUnavailable(RedisFailure):
    """The server can't be reached, is too slow, or can't serve now.

    ``indeterminate`` is True if the command had left this process, so that a write may have happened. The methods that
    write document the effect of a repeat. If it may do something twice, a note on the error says so, too.
    ``using`` is the alias of the connection and ``reason`` the message of its last failure; "" if they are not known.
    """

    def __init__(self, message: str, *, indeterminate: bool = False) -> None:
        super().__init__(message)
        self.indeterminate = indeterminate
        self.using = self.reason = ""


class PoolExhausted(RedisFailure):
    """All connections of this process were in use, and none came free in time. Nothing was sent.

    This is not an outage: the server may be well. Neither the circuit breaker nor the failure policy ``open`` applies.
    """


class PermissionDenied(RedisFailure):
    """The server refused the credentials, a command or a key; repeating can't help."""


class AuthenticationFailed(PermissionDenied):
    """The server, or all Sentinels that answer, want a password, or refuse the one that the connection gives."""


class CommandFailed(RedisFailure):
    """The server answered with an error that has no class of its own; the message has its text."""


class OutOfMemory(RedisFailure):
    """The server is at ``maxmemory`` and refuses writes that add data."""


class KeyConflict(RedisFailure):
    """A key of the kit holds another type: something else wrote to it. Nothing was changed."""


class ParameterMismatch(RedisKitError):
    """An index is stored with other parameters than those of the code. Nothing was changed; the message names both."""


class RebuildRunning(RedisKitError):
    """Another process rebuilds this index, or died less than 60 seconds ago. Nothing was changed."""


class RebuildLost(RedisKitError):
    """The values of a rebuild are lost, as after a restart of the server. The index is as it was before it."""
