"""A page of the list of held locks and semaphores, with the figures of all of them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import CombinedBatch
from redis_kit.locks.inspection import index
from redis_kit.locks.inspection.index import HeldLock, HeldSemaphore, IndexEntry

MOST = 10_000  # names that are counted
MAX_HOLDERS = 20  # of each semaphore
COUNTED = 40  # locks in a call that counts waiters; some of these calls are one command


class HeldPage(NamedTuple):
    """The locks and semaphores of a page, and figures.

    - ``number`` and ``pages``: the page, and how many pages match the search.
    - ``matching``: names that match.
    - ``all_locks``, ``all_slots``, ``all_waiters``: those of all names, whether they match or not.
    - ``left_out``: names beyond the 10,000 that end first. They are neither counted nor listed.
    """

    locks: list[HeldLock]
    semaphores: list[HeldSemaphore]
    number: int
    pages: int
    matching: int
    all_locks: int
    all_slots: int
    all_waiters: int
    left_out: int


def read_page(number: int, *, search: str = "", size: int = 100, using: str = "default") -> HeldPage:
    """Return a page of the names that contain the search, in any case; the last page for a number beyond it.

    The names are in the order in which their leases end. Two round trips.
    """
    page: HeldPage = index.Bucket("0", using=using).run_flow(_read_page(number, search.casefold(), size, using))
    return page


def _read_page(number: int, search: str, size: int, using: str) -> Flow[HeldPage]:
    entries, total = yield from index.held(MOST, using)
    matching = [entry for entry in entries if _matches(entry, search)] if search else entries
    pages = max(1, -(-len(matching) // size))
    number = min(max(1, number), pages)
    shown = {entry.member for entry in matching[(number - 1) * size : number * size]}
    counted = [entry for entry in entries if entry.member.kind == "lock" and entry.member not in shown]
    read = [entry for entry in entries if entry.member.kind != "lock" or entry.member in shown]
    steps = [entry.bucket.inspect(entry.member, MAX_HOLDERS if entry.member in shown else 1) for entry in read]
    replies = (yield CombinedBatch([*steps, *_waiters(counted)])) if entries else ()
    held = [(entry.member, index.parse(entry.member, reply)) for entry, reply in zip(read, replies, strict=False)]
    locks = [lock for _, lock in held if isinstance(lock, HeldLock)]
    semaphores = [semaphore for _, semaphore in held if isinstance(semaphore, HeldSemaphore)]
    read_write = sum(semaphore.kind != "semaphore" for semaphore in semaphores)
    return HeldPage(
        [lock for member, lock in held if member in shown and isinstance(lock, HeldLock)],
        [semaphore for member, semaphore in held if member in shown and isinstance(semaphore, HeldSemaphore)],
        number,
        pages,
        len(matching),
        all_locks=len(locks) + len(counted) + read_write,
        all_slots=sum(semaphore.used for semaphore in semaphores if semaphore.kind == "semaphore"),
        all_waiters=sum(replies[len(read) :])
        + sum(lock.waiters for lock in locks)
        + sum(semaphore.waiters for semaphore in semaphores),
        left_out=total - len(entries),
    )


def _waiters(locks: Sequence[IndexEntry]) -> Iterator[ScriptCall]:
    by_bucket: dict[str, list[IndexEntry]] = {}
    for entry in locks:
        by_bucket.setdefault(entry.bucket.name, []).append(entry)
    for entries in by_bucket.values():
        for first in range(0, len(entries), COUNTED):
            yield entries[0].bucket.count_waiters([entry.member for entry in entries[first : first + COUNTED]])


def _matches(entry: IndexEntry, search: str) -> bool:
    return any(search in name.casefold() for name in entry.member.names)
