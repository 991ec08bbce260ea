"""The names of keys: which bucket a lock is in, how it is called in the bucket's index, and its own keys."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote

from redis_kit.core.keys import bucket_of, encode


class LockKeys(NamedTuple):
    """The keys of a lock or semaphore. The first four are shared by all names of its bucket.

    A Lock has a ``holder``; all others are made of slots, with ``holders``. ``lease`` is what the key of each of their
    leases begins with.
    """

    live: str
    waited: str
    waits: str
    lease: str
    holder: str
    holders: str
    limits: str
    limit: str
    waiters: str
    signal: str
    queue: str
    tickets: str

    @classmethod
    def of(cls, bucket: str, member: str) -> "LockKeys":
        """Return the keys of a member of a bucket, given what the bucket's keys begin with."""
        own = f"{bucket}{member}:"
        return cls(*[bucket + part for part in cls._fields[:4]], *[own + part for part in cls._fields[4:]])


class HeldName(str):
    """An entry in a bucket's index: the kind, the semaphores that it is within, and the name, as parts of a key."""

    __slots__ = ()

    @classmethod
    def of(cls, kind: str, name: str, within: Sequence[str] = ()) -> "HeldName":
        """Return what stands for a name in the index. Raises InvalidName."""
        return cls(":".join((kind, *map(encode, (*within, name)))))

    @property
    def kind(self) -> str:
        """Return the kind."""
        return self.partition(":")[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names, the outermost first."""
        return tuple(map(unquote, self.split(":")[1:]))

    @property
    def bucket(self) -> str:
        """Return the bucket of the outermost name."""
        return bucket_of(self.split(":")[1])


def tag_of(encoded: str) -> str:
    """Return the hash tag of an encoded name: that of its bucket."""
    return f"locks:{bucket_of(encoded)}"
