"""The functions of inspection: held locks and semaphores, contended names, and the forced release of a lease."""

import logging
from collections.abc import Sequence
from functools import cache
from itertools import chain, repeat
from typing import Any, NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.gather import gather
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch, Call
from redis_kit.core.text import did_you_mean, shortened
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.sequences import batched
from redis_kit.locks.holders.holder import Holder, StoredLease, parse_lock, parse_slot
from redis_kit.locks.inspection import index
from redis_kit.locks.inspection.history import LockWaits, read_waits
from redis_kit.locks.inspection.index import KINDS, Bucket, Contended, HeldLock, HeldSemaphore
from redis_kit.locks.keys import HeldName
from redis_kit.locks.kinds.fair_lock import FairLock
from redis_kit.locks.kinds.lock import Lock
from redis_kit.locks.kinds.read_write_lock import ReadLock, WriteLock
from redis_kit.locks.kinds.semaphore import Semaphore
from redis_kit.locks.kinds.slots import SlotLock

LIMIT = (1, 10_000)
MAX_HOLDERS = 20  # of each semaphore in a list
ALL = range(2**63)  # fences
logger = logging.getLogger("redis_kit.locks")

MAX_LEASES = 10_000
RELEASES_AT_ONCE = 500  # leases in one round trip
MAX_NESTED = 1000  # semaphores within the given one

Releases = list[tuple[StoredLease, ScriptCall]]  # leases, and the steps that end them
MOST_LISTED = 10_000  # names that are listed
MAX_AWAITED = 250  # names of each bucket whose waiters are counted
MAX_BLOCKING = 100  # names with waiters that the summary looks at


class HeldLocks(NamedTuple):
    """The locks and semaphores that are held; ``more`` is the number of those beyond the limit."""

    locks: list[HeldLock]
    semaphores: list[HeldSemaphore]
    more: int


@operation(over=index.over)
def held_locks(*, limit: int = 100, using: str = "default") -> Flow[HeldLocks]:
    """Return the locks and semaphores that are held now, in the order in which they end.

    At most ``limit`` (1 to 10,000), and at most 20 holders of each semaphore. Two round trips; on a Cluster two per
    node.
    """
    members, count, _ = yield from index.held(whole_number("limit", limit, LIMIT), using)
    locks, semaphores, _ = yield from _states(members, [], using)
    return HeldLocks(locks, semaphores, more=count - len(members))


@operation(over=index.over)
def find(
    name: str, *, within: Sequence[str] = (), limit: int = 100, using: str = "default"
) -> Flow[list[HeldLock | HeldSemaphore]]:
    """Return what is held under a name, of each kind; an empty list if nothing is.

    At most ``limit`` (1 to 10,000) holders of each. ``within`` names the semaphores that a semaphore is within, the
    outermost first; without it, those within others are not searched. One round trip.
    """
    if isinstance(within, str):
        raise InvalidValue(f"within must be a list of names, not {shortened(within)}.")
    kinds = ("semaphore",) if within else KINDS
    members = [HeldName.of(kind, name, within) for kind in kinds]
    locks, semaphores, _ = yield from _states(members, [], using, holders=whole_number("limit", limit, LIMIT))
    return [*locks, *semaphores]


@operation(over=index.over)
def contended(*, limit: int = 20, using: str = "default") -> Flow[list[Contended]]:
    """Return the locks and semaphores with the longest waits in all, within the last 24 hours.

    At most ``limit`` (1 to 200). One round trip; on a Cluster one per node.
    """
    return index.contended(whole_number("limit", limit, (1, 200)), using)


@operation(over=index.over)
def force_release(
    name: str,
    *,
    kind: str = "lock",
    fence: int | None = None,
    within: Sequence[str] = (),
    using: str = "default",
) -> Flow[list[Holder]]:
    """End the lease of a name's holder, wake a waiter as its release would, and return the holders whose leases ended.

    ``kind`` is "lock", "fairlock", "rwlock" or "semaphore". Of the last two all leases end, at most 10,000 per call, or
    the one with the ``fence``. With a fence, a later holder keeps its lease. ``within`` names the semaphores that this
    one is within, the outermost first. The holder is not stopped: it learns of the loss at its next renewal, extension
    or release, which raise LockLost; until then only a database that checks fences refuses its writes. Returns an empty
    list if nobody held it. Two round trips, one more for nested semaphores and for each 500 leases; logged as warnings.
    """
    fences = ALL if fence is None else range(whole_number("fence", fence, (0, ALL[-1])), fence + 1)
    return force(kind, name, within, fences, using)


aheld_locks = twin(held_locks)
afind = twin(find)
acontended = twin(contended)
aforce_release = twin(force_release)


def _states(
    members: Sequence[HeldName], more: Sequence[ScriptCall], using: str, *, holders: int = MAX_HOLDERS
) -> Flow[tuple[list[HeldLock], list[HeldSemaphore], Sequence[Any]]]:
    """Return which of some members are held, and the replies to further calls. One round trip, or none."""
    steps = [*(index.bucket_of(member, using).inspect(member, holders) for member in members), *more]
    replies = (yield Batch(steps)) if steps else ()
    states = [index.parse(member, reply) for member, reply in zip(members, replies, strict=False)]
    locks = [lock for lock in states if isinstance(lock, HeldLock)]
    semaphores = [semaphore for semaphore in states if isinstance(semaphore, HeldSemaphore)]
    return locks, semaphores, replies[len(members) :]


def _member(kind: str, name: str, within: Sequence[str]) -> HeldName:
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS)
        raise InvalidValue(f"kind must be one of {', '.join(map(repr, KINDS))}, not {shortened(kind)}. {hint}".rstrip())
    if isinstance(within, str) or (within and kind != "semaphore"):
        raise InvalidValue(f"within must be a list of names, and only a semaphore has one, not {shortened(within)}.")
    return HeldName.of(kind, name, within)


def force(kind: str, name: str, within: Sequence[str], fences: range, using: str) -> Flow[list[Holder]]:
    """End the leases of a name with these fences, and return their holders. Later leases have higher fences."""
    member = _member(kind, name, within)
    find = _releases_of_lock if kind == "lock" else _releases_of_slots
    releases = yield from find(member, index.bucket_of(member, using), fences)
    holders = []
    for some in batched(releases, RELEASES_AT_ONCE):
        replies = yield Batch([step for _, step in some])
        for (lease, _), reply in zip(some, replies, strict=True):
            if reply:
                logger.warning(
                    "%a (fence %d) was released by force; holder: %a.", member, lease.fence, lease.holder.text
                )
                holders.append(lease.holder)
    return holders


def _releases_of_lock(member: HeldName, bucket: Bucket, fences: range) -> Flow[Releases]:
    stored = parse_lock((yield bucket.inspect(member, 1))[1])
    if stored is None or stored[1].fence not in fences:
        return []
    token, lease = stored
    return [(lease, Lock(member.names[0], using=bucket.using).release_step(token, unsure=True))]


def _releases_of_slots(member: HeldName, bucket: Bucket, fences: range) -> Flow[Releases]:
    queue = Call("EXISTS", bucket.slot_keys(member).queue)
    state, listed, queued = yield Batch([bucket.inspect(member, MAX_LEASES), bucket.list_held(MAX_LEASES), queue])
    leases = {entry.decode(): parse_slot(about) for entry, _, about in index.slots_of(state)}
    chosen = {entry: lease for entry, lease in leases.items() if lease.fence in fences}
    inner = [other for _, other in index.members(listed) if other.startswith(f"{member}:")]
    innermost = (yield from _innermost(inner[:MAX_NESTED], bucket)) if chosen and inner else {}
    fair = bool(queued)

    @cache
    def source(home: HeldName, limits: tuple[int, ...], weight: int) -> SlotLock:
        if home.kind == "semaphore":
            in_order = fair and len(home.names) == 1
            return semaphore(home.names, limits, weight=weight, fair=in_order, using=bucket.using)
        kind: type[SlotLock] = FairLock if home.kind == "fairlock" else ReadLock if weight == 1 else WriteLock
        return kind(home.names[0], using=bucket.using)

    def release(entry: str, lease: StoredLease) -> ScriptCall:
        token, limit, *weight = entry.split(" ")
        home = innermost.get(token, member)
        holder = source(home, lease.limits or (int(limit),), int(weight[0]) if weight else 1)
        return holder.release_step(token, unsure=True)

    return [(lease, release(entry, lease)) for entry, lease in chosen.items()]


def semaphore(
    names: Sequence[str], limits: Sequence[int], *, weight: int = 1, fair: bool = False, using: str
) -> Semaphore:
    """Return the semaphore with a name, the last one, within those before it. The last limit is that of all further."""
    *outer, own = zip(names, chain(limits, repeat(limits[-1])), strict=False)
    within = None
    for name, limit in outer:
        within = Semaphore(name, limit, within=within, using=using)
    return Semaphore(*own, weight=weight, fair=fair, within=within, using=using)


def _innermost(inner: Sequence[HeldName], bucket: Bucket) -> Flow[dict[str, HeldName]]:
    """Return the innermost semaphore of each lease: its holder releases and renews it from there outwards."""
    inner = sorted(inner, key=lambda member: len(member.names))
    replies = yield Batch([bucket.inspect(member, MAX_LEASES) for member in inner])
    return {
        entry.decode().partition(" ")[0]: member
        for member, reply in zip(inner, replies, strict=True)
        for entry, _, _ in index.slots_of(reply)
    }


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


def read_page(number: int, search: str, size: int, using: str) -> Flow[HeldPage]:
    """Return a page of the names that contain the search, in any case; the last page for a number beyond it.

    The names are in the order in which their leases end. Two round trips.
    """
    most = MOST_LISTED if search else min(max(1, number) * size, MOST_LISTED)
    matches, held, awaited = yield from index.held(most, using, waiting=MAX_AWAITED)
    matching = min(held, MOST_LISTED)
    if search:
        matches = [name for name in matches if any(search.casefold() in part.casefold() for part in name.names)]
        matching = len(matches)
    pages = max(1, -(-matching // size))
    number = min(max(1, number), pages)
    shown = matches[(number - 1) * size : number * size]
    locks, semaphores, waiting = yield from _states(shown, index.count_waiters(awaited, using), using)
    left_out = max(held - MOST_LISTED, 0)
    return HeldPage(locks, semaphores, number, pages, matching, held, sum(waiting), left_out)


def read_summary(most_waited: int, using: str) -> Flow[Summary]:
    """Read the summary. Two round trips."""
    parts: list[Flow[Any]] = [_read_waiting(using), index.contended(most_waited, using), read_waits(60, using)]
    (held, waiting, awaited), most, recent = yield from gather(parts)
    return Summary(held, waiting, awaited, most, recent)


def _read_waiting(using: str) -> Flow[tuple[int, int, list[HeldLock]]]:
    _, held, names = yield from index.held(0, using, waiting=MAX_AWAITED)
    locks, _, waiting = yield from _states(names[:MAX_BLOCKING], index.count_waiters(names, using), using, holders=1)
    return held, sum(waiting), locks
