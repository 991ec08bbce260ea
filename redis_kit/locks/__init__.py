"""Locks and semaphores: leases that end by themselves when their holder dies."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.locks.decorator import locked
    from redis_kit.locks.errors import AlreadyHeld, CannotRenew, LockLost, LockNotAcquired, NotHeld, StaleFence
    from redis_kit.locks.fairlock import FairLock
    from redis_kit.locks.fencedmodel import FencedModelMixin as FencedModelMixin
    from redis_kit.locks.fencing import fenced
    from redis_kit.locks.holder import Holder
    from redis_kit.locks.instance import single_instance
    from redis_kit.locks.lease import Lease
    from redis_kit.locks.leases import Leases
    from redis_kit.locks.live import (
        Contended,
        Live,
        LiveLock,
        LiveSemaphore,
        LiveSlot,
        acontended,
        afind,
        aforce_release,
        alive_locks,
        contended,
        find,
        force_release,
        live_locks,
    )
    from redis_kit.locks.lock import Lock
    from redis_kit.locks.multilock import MultiLock
    from redis_kit.locks.rwlock import ReadWriteLock
    from redis_kit.locks.semaphore import Semaphore

# FencedModelMixin is public too, but no model can be imported before the apps are loaded, as "import *" may be.
__all__ = [
    "AlreadyHeld",
    "CannotRenew",
    "Contended",
    "FairLock",
    "Holder",
    "Lease",
    "Leases",
    "Live",
    "LiveLock",
    "LiveSemaphore",
    "LiveSlot",
    "Lock",
    "LockLost",
    "LockNotAcquired",
    "MultiLock",
    "NotHeld",
    "ReadWriteLock",
    "Semaphore",
    "StaleFence",
    "acontended",
    "afind",
    "aforce_release",
    "alive_locks",
    "contended",
    "fenced",
    "find",
    "force_release",
    "live_locks",
    "locked",
    "single_instance",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "lock": ("Lock",),
        "semaphore": ("Semaphore",),
        "fairlock": ("FairLock",),
        "rwlock": ("ReadWriteLock",),
        "multilock": ("MultiLock",),
        "leases": ("Leases",),
        "decorator": ("locked",),
        "instance": ("single_instance",),
        "lease": ("Lease",),
        "holder": ("Holder",),
        "live": (
            "Contended",
            "Live",
            "LiveLock",
            "LiveSemaphore",
            "LiveSlot",
            "acontended",
            "afind",
            "aforce_release",
            "alive_locks",
            "contended",
            "find",
            "force_release",
            "live_locks",
        ),
        "errors": ("AlreadyHeld", "CannotRenew", "LockLost", "LockNotAcquired", "NotHeld", "StaleFence"),
        "fencing": ("fenced",),
        "fencedmodel": ("FencedModelMixin",),
    },
)
