"""Locks and semaphores: pairs of acquire and release, each of them by itself, and calls about a held lease."""

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.support.server_cost import Operations, Part, Prepared
from benchmarks.support.workers.server import Server
from redis_kit.locks import FairLock, Lock, MultiLock, ReadWriteLock, Semaphore

PEER = "redis-py: Lock"
TIMEOUT = 3600  # seconds: no lease ends between two slices
NAMES = 100  # locks in turn, as each is held until the next slice
MOST = {"Lock": 2.0, "FairLock": 4.0, "Semaphore": 3.0, "ReadWriteLock, read": 3.0}  # times the peer's


def locks(server: Server) -> Part:
    """Return all calls of locks."""
    kinds: dict[str, Callable[[str], Any]] = {
        PEER: lambda name: server.client.lock(f"bench:{name}", timeout=TIMEOUT),
        "kit: Lock": lambda name: Lock(name, timeout=TIMEOUT),
        "kit: FairLock": lambda name: FairLock(name, timeout=TIMEOUT),
        "kit: Semaphore": lambda name: Semaphore(name, 5, timeout=TIMEOUT),
        "kit: Semaphore, fair": lambda name: Semaphore(f"fair {name}", 5, timeout=TIMEOUT, fair=True),
        "kit: ReadWriteLock, read": lambda name: ReadWriteLock(name, timeout=TIMEOUT).read,
        "kit: ReadWriteLock, write": lambda name: ReadWriteLock(name, timeout=TIMEOUT).write,
        "kit: MultiLock of three": lambda name: MultiLock(name, f"{name} too", f"{name} as well", timeout=TIMEOUT),
    }
    operations: Operations = {f"{kind}: acquire, release": _cycle(made("bench")) for kind, made in kinds.items()}
    for kind, made in kinds.items():
        operations |= _apart(kind, [made(f"apart {kind} {number}") for number in range(NAMES)])
    operations |= _held({kind: made(f"held {kind}") for kind, made in kinds.items() if "MultiLock" not in kind})
    refused = Lock("held kit: Lock", timeout=TIMEOUT)
    operations["kit: Lock: acquire, refused"] = lambda: refused.acquire(blocking=False)
    goals = [(f"kit: {kind}: acquire, release", f"{PEER}: acquire, release", most) for kind, most in MOST.items()]
    return Part("locks", operations, tuple(goals))


def _cycle(lock: Any) -> Callable[[], None]:
    def cycle() -> None:
        lock.acquire()
        lock.release()

    return cycle


def _apart(kind: str, all_locks: list[Any]) -> Operations:
    held: dict[Any, None] = {}

    def acquire(lock: Any) -> None:
        lock.acquire()
        held[lock] = None

    def release(lock: Any) -> None:
        lock.release()
        del held[lock]

    def free(_: int) -> Iterable[Any]:
        for lock in list(held):
            release(lock)
        return all_locks

    def taken(_: int) -> Iterable[Any]:
        for lock in all_locks:
            if lock not in held:
                acquire(lock)
        return all_locks

    return {f"{kind}: acquire": Prepared(free, acquire), f"{kind}: release": Prepared(taken, release)}


def _held(kinds: dict[str, Any]) -> Operations:
    operations: Operations = {}
    for kind, lock in kinds.items():
        lock.acquire()
        operations[f"{kind}: extend"] = lambda lock=lock: lock.extend(TIMEOUT, replace_ttl=True)
        operations[f"{kind}: {'used' if 'Semaphore' in kind else 'locked'}"] = getattr(
            lock, "used" if "Semaphore" in kind else "locked"
        )
    return operations
