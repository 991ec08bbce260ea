"""Errors of locks and semaphores. They are errors of redis-py's locks, too."""

from redis.exceptions import LockError, LockNotOwnedError

from redis_kit.core.errors import RedisKitError


def with_notes(error: Exception) -> str:
    """Return the text of an error and its notes, on one line."""
    return " ".join([str(error), *getattr(error, "__notes__", ())])


class _NamedLockError(RedisKitError, LockError):
    def __init__(self, message: str, lock_name: str = "") -> None:
        super().__init__(message, lock_name)
        self.args = (message,)  # redis-py 6.4 leaves both there, so that the text would be that of a tuple


class LockNotAcquired(_NamedLockError):
    """The lock was held by others for as long as the caller waited. ``holder`` names the holder, or is empty."""

    def __init__(self, message: str, lock_name: str = "", holder: str = "") -> None:
        super().__init__(message, lock_name)
        self.holder = holder


class AlreadyHeld(_NamedLockError):
    """The caller holds this lock already and would wait for itself, or asks for options that its lease lacks."""


class NotHeld(_NamedLockError, LockNotOwnedError):
    """The caller does not hold a lease: never acquired, released before, or acquired by another thread or process."""


class LockLost(NotHeld):
    """The lease ended, so another caller may hold the lock now. It is never acquired again automatically."""


class CannotRenew(RedisKitError, RuntimeError):
    """The thread that renews leases can't be started: too many threads, or the interpreter is ending."""


class StaleFence(NotHeld):
    """A row refused a write, since a later holder has changed it.

    A kind of NotHeld, since the lease ended before the later one began: code that handles the loss of a lock handles
    this, too. It is not LockLost, which is the answer of the lock. ``model`` is the label of the model, ``fence`` that
    of the lease, ``newer`` that of the row.
    """

    def __init__(self, message: str, lock_name: str = "", *, model: str = "", fence: int = 0, newer: int = 0) -> None:
        super().__init__(message, lock_name)
        self.model, self.fence, self.newer = model, fence, newer
