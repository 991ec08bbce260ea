"""A job's good end as bytes, for the board: what the server has yet to be told."""

import struct
from itertools import accumulate, pairwise
from typing import NamedTuple

from redis_kit.queues.jobs.job import Job

_HEAD = struct.Struct("<HIIIQ")


class Ack(NamedTuple):
    """A job that is done: of which source, which claim; its result, b"" where none is stored, for ``keep`` ms."""

    source: int
    token: bytes
    id: bytes
    value: bytes = b""
    keep: int = 0

    def pack(self) -> bytes:
        """Return it as bytes."""
        lengths = len(self.token), len(self.id), len(self.value)
        return b"".join((_HEAD.pack(self.source, *lengths, self.keep), self.token, self.id, self.value))

    @classmethod
    def unpack(cls, entry: bytes) -> "Ack":
        """Return what pack() was called on. Raises ValueError where the bytes are none of its."""
        try:
            source, token, id, value, keep = _HEAD.unpack_from(entry)
        except struct.error as error:
            raise ValueError("too short for an entry") from error
        if len(entry) != _HEAD.size + token + id + value:
            raise ValueError("the lengths in an entry don't fit it")
        ends = list(accumulate((token, id, value), initial=_HEAD.size))
        parts = [entry[begin:end] for begin, end in pairwise(ends)]
        return cls(source, parts[0], parts[1], parts[2], keep)


def ack_of(job: Job, value: bytes = b"", keep: int = 0, *, source: int = 0) -> Ack:
    """Return what is told of a job that is done."""
    token, id = (name.encode("utf-8", "surrogateescape") for name in (job.token, job.id))
    return Ack(source, token, id, value, keep)
