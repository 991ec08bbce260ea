"""The operations of locks that ``rk_bench`` measures."""

from collections.abc import Iterator

from redis_kit.core.component import Operation
from redis_kit.locks.kinds.lock import Lock
from redis_kit.locks.kinds.semaphore import Semaphore


def operations(using: str) -> Iterator[Operation]:
    """Yield a lock's and a semaphore's cycle. Two round trips each."""
    lock, slots = Lock("lock", using=using), Semaphore("semaphore", 5, using=using)

    def lock_and_release() -> None:
        with lock:
            pass

    def take_a_slot_and_release() -> None:
        with slots:
            pass

    yield Operation("acquire and release a lock", lock_and_release)
    yield Operation("acquire and release a semaphore", take_a_slot_and_release)
