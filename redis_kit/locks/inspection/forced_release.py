"""The forced release of a lease: its holder is looked up, and the release that the holder would send is sent."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, repeat

from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch, Call
from redis_kit.core.values.sequences import batched
from redis_kit.locks.holders.holder import Holder, StoredLease, parse_lock, parse_slot
from redis_kit.locks.inspection import index
from redis_kit.locks.inspection.index import Bucket
from redis_kit.locks.keys import HeldName, SlotKeys
from redis_kit.locks.kinds import slots
from redis_kit.locks.kinds.lock import Lock

logger = logging.getLogger("redis_kit.locks")

MAX_LEASES = 10_000
BATCH = 500  # leases in one round trip
MAX_NESTED = 1000  # semaphores within the given one
FAIR = ("fairlock", "rwlock")

Releases = list[tuple[StoredLease, ScriptCall]]  # leases, and the steps that end them


@dataclass
class _Slots:
    """The values that the scripts of slots need."""

    member: str
    bucket: Bucket
    limit: int
    weight: int

    def keys(self) -> SlotKeys:
        return self.bucket.slot_keys(HeldName(self.member))


def force(member: HeldName, fence: int | None, using: str) -> Flow[list[Holder]]:
    """End all leases of a member, or the one with this fence, and return their holders."""
    find = _releases_of_lock if member.kind == "lock" else _releases_of_slots
    releases = yield from find(member, index.bucket_of(member, using), fence)
    holders = []
    for some in batched(releases, BATCH):
        replies = yield Batch([step for _, step in some])
        for (lease, _), reply in zip(some, replies, strict=True):
            if reply:
                logger.warning(
                    "%a (fence %d) was released by force; holder: %a.", member, lease.fence, lease.holder.text
                )
                holders.append(lease.holder)
    return holders


def _releases_of_lock(member: HeldName, bucket: Bucket, fence: int | None) -> Flow[Releases]:
    stored = parse_lock((yield bucket.inspect(member, 1))[1])
    if stored is None or fence not in (None, stored[1].fence):
        return []
    token, lease = stored
    return [(lease, Lock(member.names[0], using=bucket.using).release_step(token, unsure=True))]


def _releases_of_slots(member: HeldName, bucket: Bucket, fence: int | None) -> Flow[Releases]:
    queue = Call("EXISTS", bucket.slot_keys(member).queue)
    state, listed, queued = yield Batch([bucket.inspect(member, MAX_LEASES), bucket.list_held(MAX_LEASES), queue])
    leases = {entry.decode(): parse_slot(about) for entry, _, about in index.slots_of(state)}
    chosen = {entry: lease for entry, lease in leases.items() if fence in (None, lease.fence)}
    inner = [entry.member for entry in index.members(bucket, listed) if entry.member.startswith(f"{member}:")]
    innermost = (yield from _innermost(inner[:MAX_NESTED], bucket)) if chosen and inner else {}
    send = slots.release_fair if queued or member.kind in FAIR else slots.release

    @cache
    def levels(home: HeldName, limits: tuple[int, ...], weight: int) -> slots.Levels:
        pairs = zip(home.levels, chain(limits, repeat(limits[-1])), strict=False)
        return slots.Levels([_Slots(str(level), bucket, limit, weight) for level, limit in pairs])

    def release(entry: str, lease: StoredLease) -> ScriptCall:
        token, limit, *weight = entry.split(" ")
        home = innermost.get(token, member)
        return send(levels(home, lease.limits or (int(limit),), int(weight[0]) if weight else 1), token, unsure=True)

    return [(lease, release(entry, lease)) for entry, lease in chosen.items()]


def _innermost(inner: Sequence[HeldName], bucket: Bucket) -> Flow[dict[str, HeldName]]:
    """Return the innermost semaphore of each lease: its holder releases and renews it from there outwards."""
    inner = sorted(inner, key=lambda member: len(member.names))
    replies = yield Batch([bucket.inspect(member, MAX_LEASES) for member in inner])
    return {
        entry.decode().partition(" ")[0]: member
        for member, reply in zip(inner, replies, strict=True)
        for entry, _, _ in index.slots_of(reply)
    }
