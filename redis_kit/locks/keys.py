"""The names of keys: which bucket a lock is in, how it is called in the bucket's index, and its own keys."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote

from redis_kit.core.keys import bucket_of, encode


class LockKeys(NamedTuple):
    """The keys of a lock. The first three are shared by all names of its bucket."""

    live: str
    waited: str
    waits: str
    holder: str
    waiters: str
    signal: str


class SlotKeys(NamedTuple):
    """The keys of a semaphore, or of a lock that is built like one. Those in SHARED are shared, as in LockKeys.

    ``lease`` is what the key of each lease begins with.
    """

    live: str
    waited: str
    waits: str
    holders: str
    limits: str
    limit: str
    waiters: str
    signal: str
    queue: str
    tickets: str
    lease: str


SHARED = (*LockKeys._fields[:3], "lease")


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


def parts_of(keys: type[LockKeys] | type[SlotKeys], member: str) -> list[str]:
    """Return what follows the tag in each of a member's keys."""
    return [part if part in SHARED else f"{member}:{part}" for part in keys._fields]
