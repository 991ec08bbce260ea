"""A page of the list of held locks and semaphores, and a summary of all."""

from typing import Any, NamedTuple

from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.steps import CombinedBatch
from redis_kit.locks.inspection import index
from redis_kit.locks.inspection.history import LockWaits, read_minutes
from redis_kit.locks.inspection.index import Contended, HeldLock, HeldSemaphore, IndexEntry

MOST = 10_000  # names that are listed
MAX_HOLDERS = 20  # of each semaphore
MAX_AWAITED = 250  # names of each bucket whose waiters are counted
MAX_BLOCKING = 100  # names with waiters that the summary looks at


class HeldPage(NamedTuple):
    """The locks and semaphores of a page, and figures.

    - ``number`` and ``pages``: the page, and how many pages match the search.
    - ``matching``: names that match.
    - ``held``, ``waiting``: all names, and the callers that wait for any of them, whether they match or not.
    - ``left_out``: names beyond the 10,000 that end first. They are not listed.
    """

    locks: list[HeldLock]
    semaphores: list[HeldSemaphore]
    number: int
    pages: int
    matching: int
    held: int
    waiting: int
    left_out: int


class Summary(NamedTuple):
    """How much is held, how many callers wait, and for which locks; waits of a day by name, of an hour by minute."""

    held: int
    waiting: int
    awaited: list[HeldLock]
    contended: list[Contended]
    recent: list[LockWaits]


def read_page(number: int, *, search: str = "", size: int = 100, using: str = "default") -> HeldPage:
    """Return a page of the names that contain the search, in any case; the last page for a number beyond it.

    The names are in the order in which their leases end. Two round trips.
    """
    return index.Bucket("0", using=using).run_flow(_read_page(number, search.casefold(), size, using))


def read_summary(most_waited: int, using: str) -> Flow[Summary]:
    """Read the summary. Two round trips."""
    parts: list[Flow[Any]] = [_read_waiting(using), index.contended(most_waited, using), read_minutes(60, using)]
    (held, waiting, awaited), most, recent = yield from gather(parts)
    return Summary(held, waiting, awaited, most, recent)


def _read_waiting(using: str) -> Flow[tuple[int, int, list[HeldLock]]]:
    _, held, names = yield from index.held(0, using, waiting=MAX_AWAITED)
    looked_at = names[:MAX_BLOCKING]
    inspections = [index.bucket_of(name, using).inspect(name, 1) for name in looked_at]
    steps = [*inspections, *index.count_waiters(names, using)]
    replies = (yield CombinedBatch(steps)) if steps else ()
    state = [index.parse(name, reply) for name, reply in zip(looked_at, replies, strict=False)]
    return held, sum(replies[len(looked_at) :]), [lock for lock in state if isinstance(lock, HeldLock)]


def _read_page(number: int, search: str, size: int, using: str) -> Flow[HeldPage]:
    most = MOST if search else min(max(1, number) * size, MOST)
    entries, held, awaited = yield from index.held(most, using, waiting=MAX_AWAITED)
    matches = [entry for entry in entries if _matches(entry, search)] if search else entries
    matching = len(matches) if search else min(held, MOST)
    pages = max(1, -(-matching // size))
    number = min(max(1, number), pages)
    shown = matches[(number - 1) * size : number * size]
    inspections = [entry.bucket.inspect(entry.member, MAX_HOLDERS) for entry in shown]
    steps = [*inspections, *index.count_waiters(awaited, using)]
    replies = (yield CombinedBatch(steps)) if steps else ()
    state = [index.parse(entry.member, reply) for entry, reply in zip(shown, replies, strict=False)]
    return HeldPage(
        [lock for lock in state if isinstance(lock, HeldLock)],
        [semaphore for semaphore in state if isinstance(semaphore, HeldSemaphore)],
        number,
        pages,
        matching,
        held,
        waiting=sum(replies[len(shown) :]),
        left_out=max(held - MOST, 0),
    )


def _matches(entry: IndexEntry, search: str) -> bool:
    return any(search in name.casefold() for name in entry.member.names)
