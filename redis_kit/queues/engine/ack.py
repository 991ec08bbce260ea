"""The acknowledgement of a job that is done."""

import struct
from itertools import accumulate, pairwise
from typing import NamedTuple

from redis_kit.queues.engine.job import Job

_ACK = struct.Struct("<HIIIIQ")


class Ack(NamedTuple):
    """A job that is done, with the number of its worker queue, its claim, and its result to store; b"" without one.

    ``about`` is what the stream of done jobs holds of it, b"" if its queue has none.
    """

    source: int
    token: bytes
    id: bytes
    value: bytes = b""
    ttl_ms: int = 0
    about: bytes = b""

    def pack(self) -> bytes:
        """Return it as bytes."""
        texts = self.token, self.id, self.value, self.about
        return b"".join((_ACK.pack(self.source, *map(len, texts), self.ttl_ms), *texts))

    @classmethod
    def unpack(cls, entry: bytes) -> "Ack":
        """Return what pack() was called on. Raises ValueError for other bytes."""
        try:
            source, *lengths, ttl_ms = _ACK.unpack_from(entry)
        except struct.error as error:
            raise ValueError("too short for an entry") from error
        if len(entry) != _ACK.size + sum(lengths):
            raise ValueError("the lengths in an entry don't fit it")
        ends = list(accumulate(lengths, initial=_ACK.size))
        token, id, value, about = [entry[begin:end] for begin, end in pairwise(ends)]
        return cls(source, token, id, value, ttl_ms, about)


def ack_of(job: Job, value: bytes = b"", ttl_ms: int = 0, *, source: int = 0, about: bytes = b"") -> Ack:
    """Return the acknowledgement of a job that is done."""
    token, id = (name.encode("utf-8", "surrogateescape") for name in (job.token, job.id))
    return Ack(source, token, id, value, ttl_ms, about)
