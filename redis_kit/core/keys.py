"""Names of users inside keys: text in, a key part out that can't leave its slot, collide, or act as a glob."""

import hashlib
import re
from base64 import urlsafe_b64encode
from functools import lru_cache
from zlib import crc32

from django.conf import settings

from redis_kit.core import conf
from redis_kit.core.errors import InvalidName
from redis_kit.core.settings import KitSettings
from redis_kit.core.text import shortened

LONGEST = 512  # bytes of UTF-8
#: The names of 16 buckets for what shares indexes. As the end of hash tags they give one slot in each sixteenth of a
#: Cluster's slots, and the first eight in each eighth, whatever stands before them: CRC-16 is linear, and these slots
#: differ in the highest four bits. With 0 to 15, they would share the nodes of a quarter. They must never change.
BUCKETS = tuple(f"{first}{second}" for first in "0426" for second in "0213")
_UNSAFE = re.compile(r"[\x00-\x20\x7f%:{}*?\[\]\\^]")


def encode(name: str) -> str:
    """Return a name as part of a key; urllib.parse.unquote() reverses it.

    Two names never share a part. Raises InvalidName unless the name is 1 to 512 bytes of valid UTF-8 text.
    """
    if not isinstance(name, str) or not name:
        raise InvalidName(f"A name must be text that is not empty, not {shortened(name)}.")
    return _encoded(name)


@lru_cache(maxsize=4096)
def _encoded(name: str) -> str:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidName(
            f"The name {shortened(name)} is not valid Unicode: it has half of a surrogate pair."
        ) from None
    if size > LONGEST:
        raise InvalidName(f"The name {shortened(name)} has {size} bytes; at most {LONGEST} are allowed. Use its hash.")
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", name)


def bucket_of(encoded: str) -> str:
    """Return the bucket of an encoded name: one of BUCKETS."""
    return BUCKETS[crc32(encoded.encode()) % len(BUCKETS)]


def hashed(identity: str) -> str:
    """Return 22 characters in place of an identity, so that no address or user name is stored.

    Keyed BLAKE2b (RFC 7693) of 128 bits: the same identity gives the same text in every process with the same
    ``REDIS_KIT["HASH_KEY"]``, and the text can't be turned back without it.
    """
    hash_of = _hashed if len(identity) <= LONGEST else _hashed.__wrapped__  # the cache is bounded in bytes, too
    return hash_of(identity, _derived(conf.section(KitSettings).HASH_KEY or settings.SECRET_KEY))


@lru_cache(maxsize=4096)
def _hashed(identity: str, key: bytes) -> str:
    digest = hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=16, key=key)
    return urlsafe_b64encode(digest.digest())[:22].decode()


@lru_cache(maxsize=8)
def _derived(text: str | bytes) -> bytes:
    secret = text.encode() if isinstance(text, str) else text
    return hashlib.blake2b(secret, digest_size=32, person=b"redis_kit").digest()
