"""A job's good end: what the server has yet to be told, and the same as bytes for the board."""

import struct
from typing import NamedTuple

from redis_kit.queues.job import Job

_HEAD = struct.Struct("<HIIIQ")


class Ended(NamedTuple):
    """A job that is done: of which source, by which claim; its result, if one is stored, is kept for ``keep`` ms."""

    source: int
    token: bytes
    id: bytes
    value: bytes = b""
    keep: int = 0

    def pack(self) -> bytes:
        """Return it as bytes."""
        lengths = len(self.token), len(self.id), len(self.value)
        return b"".join((_HEAD.pack(self.source, *lengths, self.keep), self.token, self.id, self.value))


def ended(job: Job, value: bytes = b"", keep: int = 0, *, source: int = 0) -> Ended:
    """Return what is told of a job that is done."""
    names = (name.encode("utf-8", "surrogateescape") for name in (job.token, job.id))
    return Ended(source, *names, value, keep)


def unpack(entry: bytes) -> Ended:
    """Return what pack() was given. Raises ValueError where the bytes are none of its."""
    try:
        source, *lengths, keep = _HEAD.unpack_from(entry)
    except struct.error as error:
        raise ValueError("too short for an entry") from error
    if len(entry) != _HEAD.size + sum(lengths):
        raise ValueError("the lengths in an entry don't fit it")
    parts, at = [], _HEAD.size
    for length in lengths:
        parts.append(entry[at : at + length])
        at += length
    return Ended(source, *parts, keep)
