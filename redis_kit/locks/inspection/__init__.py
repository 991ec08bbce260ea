"""Inspection: held locks and semaphores, the callers that wait and have waited, and the forced release of a lease."""

from redis_kit.locks.inspection.api import (
    HeldLocks,
    acontended,
    afind,
    aforce_release,
    aheld_locks,
    contended,
    find,
    force_release,
    held_locks,
)
from redis_kit.locks.inspection.history import LockWaits, alock_history, arecent_waits, lock_history, recent_waits
from redis_kit.locks.inspection.index import KINDS, Contended, HeldLock, HeldSemaphore, HeldSlot

__all__ = [
    "KINDS",
    "Contended",
    "HeldLock",
    "HeldLocks",
    "HeldSemaphore",
    "HeldSlot",
    "LockWaits",
    "acontended",
    "afind",
    "aforce_release",
    "aheld_locks",
    "alock_history",
    "arecent_waits",
    "contended",
    "find",
    "force_release",
    "held_locks",
    "lock_history",
    "recent_waits",
]
