"""Inspection: held locks and semaphores, the callers that wait and have waited, and the forced release of a lease.

Names are spread over buckets, each with an index, so nothing is read by a key scan.
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import chain, repeat
from struct import Struct
from typing import Any, NamedTuple

from redis_kit.core import scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.keys import BUCKETS
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch, Call
from redis_kit.core.text import did_you_mean, shortened
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.sequences import batched
from redis_kit.locks.keys import HeldName, LockKeys
from redis_kit.locks.kinds.fair_lock import FairLock
from redis_kit.locks.kinds.lock import Lock
from redis_kit.locks.kinds.read_write_lock import ReadLock, WriteLock
from redis_kit.locks.kinds.semaphore import Semaphore, SlotLock, inspect_slots
from redis_kit.locks.leases.holder import Holder, StoredLease, parse_lock, parse_slot
from redis_kit.locks.settings import LockSettings

__all__ = [
    "KINDS",
    "Contended",
    "HeldLock",
    "HeldLocks",
    "HeldSemaphore",
    "HeldSlot",
    "LockWaits",
    "acontended",
    "afind",
    "aforce_release",
    "aheld_locks",
    "alock_history",
    "arecent_waits",
    "contended",
    "find",
    "force_release",
    "held_locks",
    "lock_history",
    "recent_waits",
]

logger = logging.getLogger("redis_kit.locks")
LIST_HELD = scripts.load("redis_kit.locks", "list_held")
LIST_CONTENDED = scripts.load("redis_kit.locks", "list_contended")
INSPECT_LOCK = scripts.load("redis_kit.locks", "inspect_lock")
COUNT_WAITERS = scripts.load("redis_kit.locks", "count_waiters")
GET_HISTORY = scripts.load("redis_kit.locks", "get_history")

KINDS = ("lock", "fairlock", "rwlock", "semaphore")  # all but the first are built like a semaphore
LIMIT = (1, 10_000)
MAX_HOLDERS = 20  # of each semaphore in a list
MAX_LEASES = 10_000  # of a semaphore that are released by force
RELEASES_AT_ONCE = 500  # leases in one round trip
MAX_NESTED = 1000  # semaphores within the given one
MOST_LISTED = 10_000  # names that are listed
MAX_AWAITED = 250  # names of each bucket whose waiters are counted
MAX_BLOCKING = 100  # names with waiters whose holders are read
ALL = range(2**63)  # fences
Releases = list[tuple[StoredLease, ScriptCall]]  # leases, and the steps that end them

ENTRY = Struct(">6I")  # a minute or an hour since 1970, waits, ms in all, ms at most, timeouts, lost leases
MINUTES, HOURS = 72 * 60, 90 * 24  # that are stored
NOTHING = (0, 0, 0, 0, 0)


class HeldLock(NamedTuple):
    """A lock that is held. Times are in seconds; ``timeout`` is that of its lease.

    ``kind`` is "lock" or "fairlock". ``holder``, ``location`` in its code and what it is ``doing`` are its own words.
    """

    name: str
    kind: str
    holder: str
    location: str
    doing: str
    held_for: float
    ends_in: float
    timeout: float
    fence: int
    waiters: int


class HeldSlot(NamedTuple):
    """A lease of a semaphore. Times are in seconds."""

    holder: str
    location: str
    doing: str
    held_for: float
    ends_in: float
    timeout: float
    weight: int
    fence: int


class HeldSemaphore(NamedTuple):
    """A semaphore with slots in use; its last lease ends in ``ends_in`` seconds.

    ``kind`` is "semaphore" or "rwlock". ``limit_is_set`` is True if an operator set the limit, instead of the code.
    ``holders`` are those whose leases end first, and not always all. ``within`` names the semaphores that it is
    within, the outermost first.
    """

    name: str
    kind: str
    used: int
    limit: int
    limit_is_set: bool
    ends_in: float
    waiters: int
    holders: list[HeldSlot]
    within: tuple[str, ...] = ()

    @property
    def writing(self) -> bool:
        """Tell whether it is a read/write lock that a writer holds."""
        return self.kind == "rwlock" and any(slot.weight > 1 for slot in self.holders)


class Contended(NamedTuple):
    """A lock or semaphore for which callers waited: how many did, and for how many seconds in all."""

    name: str
    kind: str
    waits: int
    waited: float
    within: tuple[str, ...] = ()


class HeldLocks(NamedTuple):
    """The locks and semaphores that are held; ``more`` is the number of those beyond the limit."""

    locks: list[HeldLock]
    semaphores: list[HeldSemaphore]
    more: int


class LockWaits(NamedTuple):
    """The waits of a minute, or of an hour, and the lost leases. ``start`` is its beginning by the server's clock.

    - ``waits``: waits that ended; ``timeouts``: those that ended without a lease.
    - ``waited`` and ``longest``: the seconds of these waits, in all and at most.
    - ``lost``: leases that had ended before their holders released or extended them.
    """

    start: datetime
    waits: int
    waited: float
    longest: float
    timeouts: int
    lost: int


class Bucket(Primitive):
    """One of the 16 buckets. Its name is what stands in keys."""

    component, settings = "locks", LockSettings

    def keys(self, member: HeldName) -> LockKeys:
        """Return the keys of a member."""
        return LockKeys.of(self.key(""), member)

    def inspect(self, member: HeldName, count: int) -> ScriptCall:
        """Return the step that reads the state of one member, and at most ``count`` of its leases."""
        keys = self.keys(member)
        return INSPECT_LOCK([keys.holder, keys.waiters]) if member.kind == "lock" else inspect_slots(keys, count)

    def list_held(self, limit: int, *, waiting: int = 0) -> ScriptCall:
        """Return the step that lists what is held, and names with waiters."""
        return LIST_HELD([self.key("live")], [limit, waiting])


def bucket_of(member: HeldName, using: str) -> Bucket:
    """Return the bucket of a member."""
    return Bucket(member.bucket, using=using)


def all_buckets(using: str) -> list[Bucket]:
    """Return all buckets."""
    return [Bucket(name, using=using) for name in BUCKETS]


def over(using: str) -> Bucket:
    """Return what runs flows over all buckets."""
    return Bucket("0", using=using)


@operation(over=over)
def held_locks(*, limit: int = 100, using: str = "default") -> Flow[HeldLocks]:
    """Return the locks and semaphores that are held now, in the order in which they end.

    At most ``limit`` (1 to 10,000), and at most 20 holders of each semaphore. Two round trips; on a Cluster two per
    node.
    """
    members, count, _ = yield from list_held(whole_number("limit", limit, LIMIT), using)
    locks, semaphores, _ = yield from _states(members, [], using)
    return HeldLocks(locks, semaphores, more=count - len(members))


@operation(over=over)
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


@operation(over=over)
def contended(*, limit: int = 20, using: str = "default") -> Flow[list[Contended]]:
    """Return the locks and semaphores with the longest waits in all, within the last 24 hours.

    At most ``limit`` (1 to 200). One round trip; on a Cluster one per node.
    """
    return read_contended(whole_number("limit", limit, (1, 200)), using)


@operation(over=over)
def force_release(
    name: str,
    *,
    kind: str = "lock",
    fence: int | None = None,
    within: Sequence[str] = (),
    using: str = "default",
) -> Flow[list[Holder]]:
    """End the lease of a name's holder, wake a waiter as its release would, and return the holders whose leases ended.

    ``kind`` is "lock", "fairlock", "rwlock" or "semaphore". For the last two, all leases end, at most 10,000 in all, or
    the one with the ``fence``. With a fence, a later holder keeps its lease. ``within`` names the semaphores that this
    one is within, the outermost first. The holder is not stopped: it learns of the loss at its next renewal, extension
    or release, which raise LockLost; until then only a database that checks fences refuses its writes. Returns an empty
    list if nobody held it. Two round trips, one more for nested semaphores and for each 500 leases; logged as warnings.
    """
    fences = ALL if fence is None else range(whole_number("fence", fence, (0, ALL[-1])), fence + 1)
    return force(kind, name, within, fences, using)


@operation(over=over)
def recent_waits(*, minutes: int = 60, using: str = "default") -> Flow[list[LockWaits]]:
    """Return the waits for all locks and semaphores in each of the last minutes, the present one last.

    ``minutes`` is from 1 to 4320. Waits below 50 ms are sampled: one of 16 counts for all. One round trip; on a Cluster
    one per node. Raises InvalidValue.
    """
    return read_waits(minutes, using)


@operation(over=over)
def lock_history(*, hours: int = 168, using: str = "default") -> Flow[list[LockWaits]]:
    """Return the waits for all locks and semaphores in each of the last hours, the present one last.

    ``hours`` is from 1 to 2160. Everything else is as with recent_waits().
    """
    return read_waits(hours, using, by_hour=True)


aheld_locks = twin(held_locks)
afind = twin(find)
acontended = twin(contended)
aforce_release = twin(force_release)
arecent_waits = twin(recent_waits)
alock_history = twin(lock_history)


def list_held(limit: int, using: str, *, waiting: int = 0) -> Flow[tuple[list[HeldName], int, list[HeldName]]]:
    """Return names in the order in which their leases end, how many are held, and names for which callers wait.

    At most ``limit`` in all, and at most ``waiting`` of each bucket. One round trip.
    """
    replies = yield Batch([bucket.list_held(limit, waiting=waiting) for bucket in all_buckets(using)])
    by_end = sorted(pair for reply in replies for pair in _ends(reply))[:limit]
    awaited = [
        HeldName(stored.removeprefix(b"waits ").decode(errors="replace")) for *_, names in replies for stored in names
    ]
    return [member for _, member in by_end], sum(count for _, count, *_ in replies), awaited


def count_waiters(names: Sequence[HeldName], using: str) -> list[ScriptCall]:
    """Return the steps that count who waits for some names."""
    by_bucket: dict[str, list[str]] = {}
    for name in names:
        by_bucket.setdefault(name.bucket, []).append(bucket_of(name, using).keys(name).waiters)
    return [COUNT_WAITERS(keys) for keys in by_bucket.values()]


def read_contended(limit: int, using: str) -> Flow[list[Contended]]:
    """See contended()."""
    keys = [[bucket.key("waited"), bucket.key("waits")] for bucket in all_buckets(using)]
    result = []
    for reply in (yield Batch([LIST_CONTENDED(pair, [limit]) for pair in keys])):
        for stored, waited, waits in zip(reply[::3], reply[1::3], reply[2::3], strict=True):
            member = HeldName(stored.decode(errors="replace"))
            *within, name = member.names
            result.append(Contended(name, member.kind, int(float(waits)), float(waited) / 1000, tuple(within)))
    return sorted(result, key=lambda entry: (-entry.waited, entry.name))[:limit]


def read_waits(count: int, using: str, *, by_hour: bool = False) -> Flow[list[LockWaits]]:
    """See recent_waits() and lock_history()."""
    part, seconds, stored = ("hours", 3600, HOURS) if by_hour else ("minutes", 60, MINUTES)
    whole_number(part, count, (1, stored))
    buckets = all_buckets(using)
    replies = yield Batch([GET_HISTORY([bucket.key(part)], [stored, seconds, count]) for bucket in buckets])
    last = max(now for now, _ in replies)
    by_number: dict[int, list[Sequence[int]]] = {number: [NOTHING] for number in range(last - count + 1, last + 1)}
    for _, text in replies:
        for number, *numbers in ENTRY.iter_unpack(text[: len(text) // ENTRY.size * ENTRY.size]):
            if number in by_number:
                by_number[number].append(numbers)
    result = []
    for number, entries in by_number.items():
        start, (waits, waited, longest, timeouts, lost) = number * seconds, zip(*entries, strict=True)
        when = datetime.fromtimestamp(start, UTC)
        result.append(LockWaits(when, sum(waits), sum(waited) / 1000, max(longest) / 1000, sum(timeouts), sum(lost)))
    return result


def _states(
    members: Sequence[HeldName], more: Sequence[ScriptCall], using: str, *, holders: int = MAX_HOLDERS
) -> Flow[tuple[list[HeldLock], list[HeldSemaphore], Sequence[Any]]]:
    """Return which of some members are held, and the replies to further calls. One round trip, or none."""
    steps = [*(bucket_of(member, using).inspect(member, holders) for member in members), *more]
    replies = (yield Batch(steps)) if steps else ()
    states = [_parse(member, reply) for member, reply in zip(members, replies, strict=False)]
    locks = [lock for lock in states if isinstance(lock, HeldLock)]
    semaphores = [semaphore for semaphore in states if isinstance(semaphore, HeldSemaphore)]
    return locks, semaphores, replies[len(members) :]


def force(kind: str, name: str, within: Sequence[str], fences: range, using: str) -> Flow[list[Holder]]:
    """End the leases of a name with these fences, and return their holders. Later leases have higher fences."""
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS)
        raise InvalidValue(f"kind must be one of {', '.join(map(repr, KINDS))}, not {shortened(kind)}. {hint}".rstrip())
    if isinstance(within, str) or (within and kind != "semaphore"):
        raise InvalidValue(f"within must be a list of names, and only a semaphore has one, not {shortened(within)}.")
    member = HeldName.of(kind, name, within)
    find_releases = _releases_of_lock if kind == "lock" else _releases_of_slots
    releases = yield from find_releases(member, bucket_of(member, using), fences)
    holders = []
    for some in batched(releases, RELEASES_AT_ONCE):
        replies = yield Batch([step for _, step in some])
        for (lease, _), reply in zip(some, replies, strict=True):
            if reply:
                text = "%a (fence %d) was released by force; holder: %a."
                logger.warning(text, member, lease.fence, lease.holder.text)
                holders.append(lease.holder)
    return holders


def _releases_of_lock(member: HeldName, bucket: Bucket, fences: range) -> Flow[Releases]:
    stored = parse_lock((yield bucket.inspect(member, 1))[1])
    if stored is None or stored[1].fence not in fences:
        return []
    token, lease = stored
    return [(lease, Lock(member.names[0], using=bucket.using).release_step(token, unsure=True))]


def _releases_of_slots(member: HeldName, bucket: Bucket, fences: range) -> Flow[Releases]:
    queue = Call("EXISTS", bucket.keys(member).queue)
    state, listed, queued = yield Batch([bucket.inspect(member, MAX_LEASES), bucket.list_held(MAX_LEASES), queue])
    leases = {entry.decode(): parse_slot(about) for entry, _, about in _slots(state)}
    chosen = {entry: lease for entry, lease in leases.items() if lease.fence in fences}
    inner = [other for _, other in _ends(listed) if other.startswith(f"{member}:")]
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
        for entry, _, _ in _slots(reply)
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


def read_page(number: int, search: str, size: int, using: str) -> Flow[HeldPage]:
    """Return a page of the names that contain the search, in any case; the last page for a number beyond it.

    The names are in the order in which their leases end. Two round trips.
    """
    most = MOST_LISTED if search else min(max(1, number) * size, MOST_LISTED)
    matches, held, awaited = yield from list_held(most, using, waiting=MAX_AWAITED)
    matching = min(held, MOST_LISTED)
    if search:
        matches = [name for name in matches if any(search.casefold() in part.casefold() for part in name.names)]
        matching = len(matches)
    pages = max(1, -(-matching // size))
    number = min(max(1, number), pages)
    shown = matches[(number - 1) * size : number * size]
    locks, semaphores, waiting = yield from _states(shown, count_waiters(awaited, using), using)
    left_out = max(held - MOST_LISTED, 0)
    return HeldPage(locks, semaphores, number, pages, matching, held, sum(waiting), left_out)


def read_waiting(using: str) -> Flow[tuple[int, int, list[HeldLock]]]:
    """Return how much is held, how many callers wait, and for which locks. Two round trips."""
    _, held, names = yield from list_held(0, using, waiting=MAX_AWAITED)
    locks, _, waiting = yield from _states(names[:MAX_BLOCKING], count_waiters(names, using), using, holders=1)
    return held, sum(waiting), locks


def _parse(member: HeldName, reply: Any) -> HeldLock | HeldSemaphore | None:
    """Return the state of a member from the reply of an inspection; None if it is free by now."""
    kind, (*within, name) = member.kind, member.names
    now = int(reply[0])
    if kind == "lock":
        _, stored, pttl, waiters = reply
        if (token_and_lease := parse_lock(stored)) is None:
            return None
        lease = token_and_lease[1]
        return HeldLock(name, kind, *_fields(lease, now, max(pttl, 0)), lease.fence, waiters)
    _, used, limit, is_set, waiters, last, _ = reply
    holders = []
    for _, ends, about in _slots(reply):
        lease = parse_slot(about)
        holders.append(HeldSlot(*_fields(lease, now, int(ends) - now), lease.weight, lease.fence))
    if not holders:
        return None
    if kind == "fairlock":
        return HeldLock(name, kind, *holders[0][:6], holders[0].fence, waiters)
    ends_in = (int(last) - now) / 1000
    return HeldSemaphore(name, kind, used, limit, bool(is_set), ends_in, waiters, holders, tuple(within))


def _fields(lease: StoredLease, now: int, left: int) -> tuple[str, str, str, float, float, float]:
    """Return the fields that HeldLock and HeldSlot share."""
    held_for = max(now - lease.fence // 1000, 0) / 1000 if lease.fence else 0.0
    holder = lease.holder
    return holder.process_text, holder.location, holder.doing, held_for, left / 1000, lease.ttl_ms / 1000


def _slots(reply: Any) -> list[tuple[bytes, bytes, bytes | None]]:
    """Return entry, end and stored lease of each slot in the reply of an inspection."""
    flat = reply[6]
    return list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))


def _ends(reply: Any) -> list[tuple[int, HeldName]]:
    """Return the names in the reply of a bucket's index, each after the ms until its lease ends."""
    now, _, flat, _ = reply
    names = [HeldName(stored.decode(errors="replace")) for stored in flat[::2]]
    return [(int(ends) - int(now), name) for name, ends in zip(names, flat[1::2], strict=True)]
