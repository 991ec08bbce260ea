"""What goes wrong with locks and semaphores. All are errors of redis-py's locks too."""

from redis.exceptions import LockError, LockNotOwnedError

from redis_kit.core.errors import RedisKitError


def with_notes(error: Exception) -> str:
    """Return what an error and its notes say, on one line."""
    return " ".join([str(error), *getattr(error, "__notes__", ())])


class LockNotAcquired(RedisKitError, LockError):
    """It stayed taken for as long as the caller wanted to wait. ``holder`` says by whom, where that is known."""

    def __init__(self, message: str, lock_name: str = "", holder: str = "") -> None:
        super().__init__(message, lock_name)
        self.holder = holder


class AlreadyHeld(RedisKitError, LockError):
    """The caller holds this lock already and would wait for itself."""


class NotHeld(RedisKitError, LockNotOwnedError):
    """The caller holds no such lease: never taken, released before, or taken by another thread, task or process."""


class LockLost(NotHeld):
    """The lease ended, so that another may hold it now. It is never taken again by itself."""


class CannotRenew(RedisKitError, RuntimeError):
    """The thread that renews leases can't be started: no more threads, or the interpreter is ending."""


class StaleFence(NotHeld):
    """A row refused a write, since a later holder has changed it.

    A kind of NotHeld, as the lease ended before the later one began: who handles the loss of a lock handles this too.
    It is not LockLost, which is the lock's own answer. ``model`` is the label of the model, ``fence`` the number of the
    lease, ``newer`` that of the row.
    """

    def __init__(self, message: str, lock_name: str = "", *, model: str = "", fence: int = 0, newer: int = 0) -> None:
        super().__init__(message, lock_name)
        self.model, self.fence, self.newer = model, fence, newer
