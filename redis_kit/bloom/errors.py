"""The errors of Bloom filters."""

from redis_kit.core.errors import RedisKitError


class ParameterMismatch(RedisKitError):
    """The filter is stored with another capacity, error or window. Nothing was changed; the message names both."""


class RebuildRunning(RedisKitError):
    """Another process rebuilds this filter. Nothing was changed."""


class RebuildLost(RedisKitError):
    """The values of a rebuild are lost, as after a restart of the server. The filter is as it was before it."""
