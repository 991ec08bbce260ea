"""Masking: identities without the part that identifies a person."""

import re
from functools import lru_cache
from ipaddress import ip_address

SHOWN = 3  # characters
HIDDEN = "***"
# From the first value of a header or field to the end: "Bearer ..." has a space, as a combined identity has.
_SENT = re.compile(r"(?<![^ ])(?:header|get|post):.+", re.DOTALL)


@lru_cache(maxsize=4096)
def masked(identity: str) -> str:
    """Return an identity without the end of an address, or without all but the first characters of a name.

    The kind, which precedes a colon, stays. Masking twice changes nothing.
    """
    kind, colon, value = identity.partition(":")
    if not colon or _is_address(identity):
        kind, colon, value = "", "", identity
    if not _is_address(value):
        return f"{kind}{colon}{value[:SHOWN] if len(value) > SHOWN else ''}{HIDDEN}"
    start = value.rpartition(".")[0] if "." in value else ":".join(value.split(":")[:2])
    return f"{kind}{colon}{start}{'.' if '.' in value else ':'}{HIDDEN}"


@lru_cache(maxsize=4096)
def without_secrets(identity: str) -> str:
    """Return an identity with the value of a header or field masked, since it may be a key or a token."""
    return _SENT.sub(lambda match: masked(match[0]), identity)


def _is_address(text: str) -> bool:
    address = text.partition("/")[0]
    try:
        ip_address(address.replace(f":{HIDDEN}", "::").replace(HIDDEN, "0"))
    except ValueError:
        return False
    return True
