"""A page of the list of held locks and semaphores, with the figures of all of them."""

from typing import NamedTuple

from redis_kit.core.flow import Flow
from redis_kit.core.steps import CombinedBatch
from redis_kit.locks.inspection import index
from redis_kit.locks.inspection.index import HeldLock, HeldSemaphore, IndexEntry

MOST = 10_000  # names that are counted
MAX_HOLDERS = 20  # of each semaphore
BATCH = 100  # names that one script reads


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
    steps = [entry.bucket.inspect(entry.member, MAX_HOLDERS if entry.member in shown else 1) for entry in entries]
    replies = (yield CombinedBatch(steps, most=BATCH)) if steps else ()
    held = [(entry.member, index.parse(entry.member, reply)) for entry, reply in zip(entries, replies, strict=True)]
    locks = [lock for _, lock in held if isinstance(lock, HeldLock)]
    semaphores = [semaphore for _, semaphore in held if isinstance(semaphore, HeldSemaphore)]
    read_write = sum(semaphore.kind != "semaphore" for semaphore in semaphores)
    return HeldPage(
        [lock for member, lock in held if member in shown and isinstance(lock, HeldLock)],
        [semaphore for member, semaphore in held if member in shown and isinstance(semaphore, HeldSemaphore)],
        number,
        pages,
        len(matching),
        all_locks=len(locks) + read_write,
        all_slots=sum(semaphore.used for semaphore in semaphores if semaphore.kind == "semaphore"),
        all_waiters=sum(lock.waiters for lock in locks) + sum(semaphore.waiters for semaphore in semaphores),
        left_out=total - len(entries),
    )


def _matches(entry: IndexEntry, search: str) -> bool:
    return any(search in name.casefold() for name in entry.member.names)
