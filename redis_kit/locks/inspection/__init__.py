"""Inspection: the locks and semaphores that are held now, their waiters, and the forced release of a lease."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
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
    from redis_kit.locks.inspection.index import KINDS, Contended, HeldLock, HeldSemaphore, HeldSlot

__all__ = [
    "KINDS",
    "Contended",
    "HeldLock",
    "HeldLocks",
    "HeldSemaphore",
    "HeldSlot",
    "acontended",
    "afind",
    "aforce_release",
    "aheld_locks",
    "contended",
    "find",
    "force_release",
    "held_locks",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "api": (
            "HeldLocks",
            "acontended",
            "afind",
            "aforce_release",
            "aheld_locks",
            "contended",
            "find",
            "force_release",
            "held_locks",
        ),
        "index": ("KINDS", "Contended", "HeldLock", "HeldSemaphore", "HeldSlot"),
    },
)
