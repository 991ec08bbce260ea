"""Locks and semaphores: leases that time out when their holder dies."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.locks.decorators.locked import locked as locked
    from redis_kit.locks.decorators.single_instance import single_instance as single_instance
    from redis_kit.locks.errors import AlreadyHeld as AlreadyHeld
    from redis_kit.locks.errors import CannotRenew as CannotRenew
    from redis_kit.locks.errors import LockLost as LockLost
    from redis_kit.locks.errors import LockNotAcquired as LockNotAcquired
    from redis_kit.locks.errors import NotHeld as NotHeld
    from redis_kit.locks.errors import StaleFence as StaleFence
    from redis_kit.locks.fencing.model import FencedModelMixin as FencedModelMixin
    from redis_kit.locks.fencing.queryset import fenced as fenced
    from redis_kit.locks.kinds.fair_lock import FairLock as FairLock
    from redis_kit.locks.kinds.lock import Lock as Lock
    from redis_kit.locks.kinds.multi_lock import LeaseGroup as LeaseGroup
    from redis_kit.locks.kinds.multi_lock import MultiLock as MultiLock
    from redis_kit.locks.kinds.read_write_lock import ReadWriteLock as ReadWriteLock
    from redis_kit.locks.kinds.semaphore import Semaphore as Semaphore
    from redis_kit.locks.leases.holder import Holder as Holder
    from redis_kit.locks.leases.lease import Lease as Lease

_PUBLIC: dict[str, tuple[str, ...]] = {
    "kinds.lock": ("Lock",),
    "kinds.semaphore": ("Semaphore",),
    "kinds.fair_lock": ("FairLock",),
    "kinds.read_write_lock": ("ReadWriteLock",),
    "kinds.multi_lock": ("MultiLock", "LeaseGroup"),
    "decorators.locked": ("locked",),
    "decorators.single_instance": ("single_instance",),
    "leases.lease": ("Lease",),
    "leases.holder": ("Holder",),
    "errors": ("AlreadyHeld", "CannotRenew", "LockLost", "LockNotAcquired", "NotHeld", "StaleFence"),
    "fencing.queryset": ("fenced",),
    "fencing.model": ("FencedModelMixin",),
}
# FencedModelMixin is public too, but no model can be imported before the apps are loaded, as "import *" may be.
__all__ = [name for names in _PUBLIC.values() for name in names if name != "FencedModelMixin"]
__getattr__, __dir__ = lazily(__name__, _PUBLIC)
