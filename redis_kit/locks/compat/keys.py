"""Keys beside a key whose name was chosen elsewhere, in the same slot of a Cluster."""

from binascii import crc_hqx
from functools import lru_cache
from itertools import count
from typing import NamedTuple

SLOTS = 16384


class SideKeys(NamedTuple):
    """The keys beside the key of a lock."""

    fence: bytes
    waiters: bytes
    signal: bytes


@lru_cache(maxsize=4096)
def side_keys(name: bytes) -> SideKeys:
    """Return the keys that go with a name. Two names never share one, not even ``a`` and ``{a}``."""
    return SideKeys(*(_beside(name, part) for part in (b"fence", b"waiters", b"signal")))


def _beside(name: bytes, part: bytes) -> bytes:
    start = name.find(b"{")
    tagged = start >= 0 and name.find(b"}", start) > start + 1
    if tagged:
        return b"%s::lock:%s" % (name, part)
    if name and b"}" not in name:
        return b"{%s}:lock:%s" % (name, part)
    # The whole name decides its slot, but it can't stand in braces.
    return b"{%s}:lock:%s:%s" % (_tag(crc_hqx(name, 0) % SLOTS), part, name)


@lru_cache(maxsize=SLOTS)
def _tag(slot: int) -> bytes:
    return next(tag for tag in (b"%x" % number for number in count()) if crc_hqx(tag, 0) % SLOTS == slot)
