"""The acknowledgement of a job that is done."""

import struct
from itertools import accumulate, pairwise
from typing import NamedTuple

from redis_kit.queues.jobs.job import Job

_ACK = struct.Struct("<HIIIQ")


class Ack(NamedTuple):
    """A job that is done, with the number of its worker queue, its claim, and its result to store; b"" without one."""

    source: int
    token: bytes
    id: bytes
    value: bytes = b""
    ttl_ms: int = 0

    def pack(self) -> bytes:
        """Return it as bytes."""
        lengths = len(self.token), len(self.id), len(self.value)
        return b"".join((_ACK.pack(self.source, *lengths, self.ttl_ms), self.token, self.id, self.value))

    @classmethod
    def unpack(cls, entry: bytes) -> "Ack":
        """Return what pack() was called on. Raises ValueError for other bytes."""
        try:
            source, token, id, value, ttl_ms = _ACK.unpack_from(entry)
        except struct.error as error:
            raise ValueError("too short for an entry") from error
        if len(entry) != _ACK.size + token + id + value:
            raise ValueError("the lengths in an entry don't fit it")
        ends = list(accumulate((token, id, value), initial=_ACK.size))
        parts = [entry[begin:end] for begin, end in pairwise(ends)]
        return cls(source, parts[0], parts[1], parts[2], ttl_ms)


def ack_of(job: Job, value: bytes = b"", ttl_ms: int = 0, *, source: int = 0) -> Ack:
    """Return the acknowledgement of a job that is done."""
    token, id = (name.encode("utf-8", "surrogateescape") for name in (job.token, job.id))
    return Ack(source, token, id, value, ttl_ms)
