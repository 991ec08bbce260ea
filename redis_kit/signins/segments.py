"""Sets of users by the days on which they signed in, joined by ``&``, ``|`` and ``~``.

The server sends the bitmaps of these days, and this process joins them. So a question neither blocks the server nor
leaves a key there.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain, islice
from typing import Any

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call, Spread
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.sequences import batched
from redis_kit.signins import keys
from redis_kit.signins.settings import SignInSettings

FEW = 8  # days whose bitmaps are read by one command: a longer one would keep the server from others
CHUNK = 1000  # ids in one round trip
MOST = 10_000_000  # ids
EVERYONE = keys.ERASED  # the bitmap of those erased tells who is left
Bitmaps = Mapping[str, int]  # by the part of their keys that is the same in all buckets


class SignInStore(Primitive):
    """What carries out the flows of sign-ins."""

    component, settings = "signins", SignInSettings

    def __init__(self, name: str = "signins") -> None:
        super().__init__(name, using=conf.section(SignInSettings).USING)


class SignInModel(SignInStore):
    """A model whose instances sign in."""

    def __init__(self, model: Any) -> None:
        super().__init__(keys.label(model))
        self.model = model


class Segment:
    """A set of users. Joined with others, it gives another one: ``new & ~back``. Counting or listing it asks Redis."""

    def __init__(self, activity: SignInModel, parts: frozenset[str], joined: Callable[[Bitmaps], int]) -> None:
        self.activity, self.parts, self.joined = activity, parts, joined

    @classmethod
    def any_of(cls, activity: SignInModel, parts: Iterable[str]) -> "Segment":
        """Return the users who are in at least one of these bitmaps."""
        names = frozenset(parts)
        return cls(activity, names, lambda bitmaps: reduce(operator.or_, map(bitmaps.__getitem__, names)))

    def __and__(self, other: "Segment") -> "Segment":
        """Return the users who are in both."""
        return self._with(other, operator.and_)

    def __or__(self, other: "Segment") -> "Segment":
        """Return the users who are in at least one of both."""
        return self._with(other, operator.or_)

    def __invert__(self) -> "Segment":
        """Return all other users who ever signed in."""
        return Segment(self.activity, self.parts, lambda bitmaps: ~self.joined(bitmaps))

    def count(self) -> int:
        """Return the number of users. Exact; one round trip, which transfers one bit for each user and day."""
        return self.activity.run_flow(self._count())

    async def acount(self) -> int:
        """See count()."""
        return await self.activity.arun_flow(self._count())

    def ids(self, limit: int = CHUNK) -> list[Any]:
        """Return the primary keys of at most ``limit`` users, in no order. A round trip more for each 1000 of them.

        Raises InvalidValue for a limit below 1.
        """
        return self.activity.run_flow(self._ids(limit))

    async def aids(self, limit: int = CHUNK) -> list[Any]:
        """See ids()."""
        return await self.activity.arun_flow(self._ids(limit))

    def _with(self, other: "Segment", operation: Callable[[int, int], int]) -> "Segment":
        if not isinstance(other, Segment) or other.activity.model is not self.activity.model:
            raise InvalidValue("Only segments of the same model can be joined.")
        parts = self.parts | other.parts
        return Segment(self.activity, parts, lambda bitmaps: operation(self.joined(bitmaps), other.joined(bitmaps)))

    def _count(self) -> Flow[int]:
        # A number below 0 is one with all further bits set: the complement of a set, which ends with the last user.
        if self.joined(dict.fromkeys(self.parts, 0)) >= 0:
            parts = list(self.parts)
            users = yield from read_joined(parts, keys.tags(self.activity.encoded))
            return self.joined(dict(zip(parts, users, strict=True))).bit_count()
        return sum(users.bit_count() for users in (yield from self._by_bucket()))  # without those erased

    def _ids(self, limit: int) -> Flow[list[Any]]:
        whole_number("limit", limit, (1, MOST))
        tags, by_bucket = keys.tags(self.activity.encoded), (yield from self._by_bucket())
        calls = (
            Call("LINDEX", keys.members(tag), place)
            for tag, users in zip(tags, by_bucket, strict=True)
            for place in places(users)
        )
        ids: list[bytes] = []
        for some in batched(islice(calls, limit), CHUNK):
            ids += yield Batch(some)
        to_python = self.activity.model._meta.pk.to_python
        return [to_python(id.decode()) for id in ids if id]

    def _by_bucket(self) -> Flow[list[int]]:
        """Return the users of each bucket as a number, without erased ones."""
        bitmaps = yield from _read(sorted(self.parts), keys.tags(self.activity.encoded))
        return [self.joined(each) & each[EVERYONE] for each in bitmaps]


def _read(parts: Sequence[str], tags: Sequence[str]) -> Flow[list[Bitmaps]]:
    """Return the bitmaps of each bucket as numbers, and that of all users who were not erased. One round trip."""
    calls = [Call("MGET", *keys.in_bucket(tag, [*parts, EVERYONE])) for tag in tags]
    replies = yield Batch([*calls, *(Call("LLEN", keys.members(tag)) for tag in tags)])
    return [
        _numbers(parts, bitmaps, length)
        for bitmaps, length in zip(replies[: len(tags)], replies[len(tags) :], strict=True)
    ]


def read_joined(parts: Sequence[str], tags: Sequence[str]) -> Flow[list[int]]:
    """Return for each part the users of these buckets as one number: joining few large ones is fast. One round trip."""
    buckets = [keys.in_bucket(tag, parts) for tag in tags]
    calls = [Call("MGET", *bucket) for bucket in buckets]
    replies = yield Spread(Call("MGET", *chain(*buckets)), calls) if len(parts) <= FEW else Batch(calls)
    bitmaps = [bits or b"" for reply in replies for bits in reply]
    width = max(map(len, bitmaps))  # each bucket takes as many bytes in all of the numbers
    padded = [bits.ljust(width, b"\0") for bits in bitmaps]
    return [int.from_bytes(b"".join(padded[at :: len(parts)]), "little") for at in range(len(parts))]


def places(users: int) -> Iterable[int]:
    """Yield the places of the bits that are set: in each byte, the first place is the highest bit."""
    for at, byte in enumerate(users.to_bytes((users.bit_length() + 7) // 8, "little")):
        if byte:
            yield from (8 * at + bit for bit in range(8) if byte & 0x80 >> bit)


def _numbers(parts: Sequence[str], bitmaps: Sequence[bytes | None], length: int) -> Bitmaps:
    *users, erased = (int.from_bytes(bits or b"", "little") for bits in bitmaps)
    return {**dict(zip(parts, users, strict=True)), EVERYONE: _first_places(length) & ~erased}


def _first_places(number: int) -> int:
    full, rest = divmod(number, 8)
    return int.from_bytes(b"\xff" * full + bytes([0xFF00 >> rest & 0xFF]), "little")
