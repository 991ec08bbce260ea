"""Ending a lease that somebody else holds: a look at who holds it, and then the release that its holder would send."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch, Call
from redis_kit.locks.holders.holder import Holder, Holding, of_lock, of_slot
from redis_kit.locks.inspection import index
from redis_kit.locks.inspection.index import Bucket, Member
from redis_kit.locks.kinds import slots
from redis_kit.locks.kinds.base import SHARED
from redis_kit.locks.kinds.lock import Lock

logger = logging.getLogger("redis_kit.locks")

MOST = 10_000  # leases
AT_ONCE = 500  # leases in one round trip
MOST_NESTED = 1000  # semaphores within the one that is looked at
FAIR = ("fairlock", "rwlock")

Found = list[tuple[Holding, ScriptCall]]  # leases, and what ends them


@dataclass
class _Slots:
    """What the scripts of slots have to know."""

    member: str
    bucket: Bucket
    limit: int
    weight: int = 1

    def _keys(self) -> tuple[str, ...]:
        own = (f"{self.member}:{part}" for part in slots.PARTS)
        return tuple(self.bucket.key(part) for part in (*SHARED, *own))


def force(member: Member, fence: int | None, using: str) -> Flow[list[Holder]]:
    """End all leases of a member, or the one with this fence, and return whose they were."""
    find = _of_lock if member.kind == "lock" else _of_slots
    found = yield from find(member, member.bucket(using), fence)
    ended = []
    for at in range(0, len(found), AT_ONCE):
        replies = yield Batch([step for _, step in found[at : at + AT_ONCE]])
        for (held, _), reply in zip(found[at:], replies, strict=False):
            if reply:
                logger.warning("%a (fence %d) was taken by force from %a.", member, held.fence, held.holder.text)
                ended.append(held.holder)
    return ended


def _of_lock(member: Member, bucket: Bucket, fence: int | None) -> Flow[Found]:
    found = of_lock((yield bucket.look(member, 1))[1])
    if found is None or fence not in (None, found[1].fence):
        return []
    token, held = found
    return [(held, Lock(member.names[0], using=bucket.using)._give_back(token))]


def _of_slots(member: Member, bucket: Bucket, fence: int | None) -> Flow[Found]:
    queue = Call("EXISTS", bucket.key(f"{member}:queue"))
    seen, listed, queued = yield Batch([bucket.look(member, MOST), index.LIST([bucket.key("live")], [MOST]), queue])
    held = {token.decode(): of_slot(about) for token, _, about in index.slots_of(seen)}
    chosen = {token: one for token, one in held.items() if fence in (None, one.fence)}
    inner = [one.member for one in index.members(bucket, listed) if one.member.startswith(f"{member}:")]
    homes = (yield from _homes(inner[:MOST_NESTED], bucket)) if chosen and inner else {}
    fair, limit = bool(queued) or member.kind in FAIR, max(seen[2], 1)

    @cache
    def levels(home: Member) -> slots.Levels:
        return slots.Levels([_Slots(one, bucket, limit) for one in home.levels])

    def end(token: str) -> ScriptCall:
        if fair:
            return slots.give_back_fair(_Slots(member, bucket, limit), token)
        return slots.give_back(levels(homes.get(token, member)), token)

    return [(one, end(token)) for token, one in chosen.items()]


def _homes(inner: Sequence[Member], bucket: Bucket) -> Flow[dict[str, Member]]:
    """Find the innermost semaphore of each lease: its holder gives it back, and renews it, from there outwards."""
    inner = sorted(inner, key=lambda one: len(one.names))
    replies = yield Batch([bucket.look(one, MOST) for one in inner])
    return {
        token.decode(): one for one, reply in zip(inner, replies, strict=True) for token, _, _ in index.slots_of(reply)
    }
