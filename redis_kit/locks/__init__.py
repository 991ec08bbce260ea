"""Locks and semaphores: leases that time out when their holder dies."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.locks.decorators.locked import locked
    from redis_kit.locks.decorators.single_instance import single_instance
    from redis_kit.locks.errors import AlreadyHeld, CannotRenew, LockLost, LockNotAcquired, NotHeld, StaleFence
    from redis_kit.locks.fencing.model import FencedModelMixin as FencedModelMixin
    from redis_kit.locks.fencing.queryset import fenced
    from redis_kit.locks.holders.holder import Holder
    from redis_kit.locks.kinds.fair_lock import FairLock
    from redis_kit.locks.kinds.lock import Lock
    from redis_kit.locks.kinds.multi_lock import MultiLock
    from redis_kit.locks.kinds.read_write_lock import ReadWriteLock
    from redis_kit.locks.kinds.semaphore import Semaphore
    from redis_kit.locks.leases.group import LeaseGroup
    from redis_kit.locks.leases.lease import Lease

# FencedModelMixin is public too, but no model can be imported before the apps are loaded, as "import *" may be.
__all__ = [
    "AlreadyHeld",
    "CannotRenew",
    "FairLock",
    "Holder",
    "Lease",
    "LeaseGroup",
    "Lock",
    "LockLost",
    "LockNotAcquired",
    "MultiLock",
    "NotHeld",
    "ReadWriteLock",
    "Semaphore",
    "StaleFence",
    "fenced",
    "locked",
    "single_instance",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "kinds.lock": ("Lock",),
        "kinds.semaphore": ("Semaphore",),
        "kinds.fair_lock": ("FairLock",),
        "kinds.read_write_lock": ("ReadWriteLock",),
        "kinds.multi_lock": ("MultiLock",),
        "leases.group": ("LeaseGroup",),
        "decorators.locked": ("locked",),
        "decorators.single_instance": ("single_instance",),
        "leases.lease": ("Lease",),
        "holders.holder": ("Holder",),
        "errors": ("AlreadyHeld", "CannotRenew", "LockLost", "LockNotAcquired", "NotHeld", "StaleFence"),
        "fencing.queryset": ("fenced",),
        "fencing.model": ("FencedModelMixin",),
    },
)
