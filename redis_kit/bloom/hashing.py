"""Values as digests of 96 bits, from which a script derives their positions."""

import hashlib
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened

SIZE = 12  # bytes: two numbers of 48 bits, which are exact in a double of Lua
Value = str | bytes | int | UUID


def digest(value: Any) -> bytes:
    """Return the digest of a value: BLAKE2b (RFC 7693) of its type and its content, so 1 and "1" differ.

    Raises InvalidValue for other types, and for True and False.
    """
    if isinstance(value, str):
        content = b"s" + value.encode("utf-8", "surrogatepass")
    elif isinstance(value, int) and not isinstance(value, bool):
        content = b"i%x" % value
    elif isinstance(value, UUID):
        content = b"u" + value.bytes
    elif isinstance(value, bytes):
        content = b"b" + value
    else:
        raise InvalidValue(f"A filter takes str, bytes, int and UUID, not {shortened(value)}.")
    return hashlib.blake2b(content, digest_size=SIZE).digest()


def digests(values: Iterable[Any]) -> list[bytes]:
    """Return the digests of values. Raises InvalidValue, also for a single text in place of several values."""
    if isinstance(values, (str, bytes)):
        raise InvalidValue(f"Give a list of values, not {shortened(values)}.")
    return [digest(value) for value in values]
