"""The error of sign-ins."""

from redis_kit.core.errors import RedisKitError


class NoneLeft(RedisKitError):
    """The make-ups or freezes of the day's month are used up. Nothing was changed."""
