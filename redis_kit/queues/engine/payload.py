"""Values as JSON and back, strictly: what comes out is what went in, or an error says where it is not so.

Beyond JSON's own types these are kept: datetime, date, Decimal, UUID and bytes, each as ``{"$type": text}``. A tuple
becomes a list, and a time zone its offset.
"""

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any
from uuid import UUID

from django.utils.functional import Promise

from redis_kit.core.logs.error_text import path_of, traceback_of
from redis_kit.core.text import shortened
from redis_kit.queues.errors import CorruptMessage, NotSerializable, PayloadTooLarge

LARGEST = 256 * 1024  # bytes
DEEPEST = 100
_INT = 2**63


def _decimal(text: str) -> Decimal:
    number = Decimal(text)
    if number.is_snan():  # whatever looks at it fails, even a comparison
        raise ValueError("a signaling NaN")
    return number


# datetime is a date too, so it comes first.
_WRITE: dict[type, tuple[str, Callable[[Any], str]]] = {
    datetime: ("$datetime", datetime.isoformat),
    date: ("$date", date.isoformat),
    Decimal: ("$decimal", str),
    UUID: ("$uuid", str),
    bytes: ("$bytes", lambda value: b64encode(value).decode()),
}
_READ: dict[str, Callable[[str], Any]] = {
    "$datetime": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$decimal": _decimal,
    "$uuid": UUID,
    "$bytes": lambda text: b64decode(text, validate=True),
}


def dumps(value: Any, root: str = "payload") -> bytes:
    """Return a value as JSON of at most 256 KiB.

    Raises NotSerializable naming the place, such as ``payload['rows'][3]``, and PayloadTooLarge.
    """
    return encoded(plain(value, root), root)


def plain(value: Any, root: str) -> Any:
    """Return a value in JSON's own types. Raises NotSerializable naming the place, which begins with ``root``."""
    return _plain(value, (root,))


def encoded(value: Any, what: str) -> bytes:
    """Return what plain() gave as JSON. Raises PayloadTooLarge for over 256 KiB."""
    return checked(_encode(value).encode(), what)


def text(values: Any, root: str) -> str:
    """Return a sequence or a dict as JSON. Raises NotSerializable as plain() does, which most values do not need."""
    if isinstance(values, dict):
        return _encode(plain(values, root))
    parts = []
    for value in values:
        kind = type(value)
        if kind is int and -_INT <= value < _INT:
            parts.append(str(value))
        elif kind is str and value.isascii():
            parts.append(encode_basestring(value))
        else:
            return _encode(plain(values, root))
    return f"[{','.join(parts)}]"


def checked(body: bytes, what: str) -> bytes:
    """Return a body. Raises PayloadTooLarge for over 256 KiB."""
    if len(body) > LARGEST:
        raise PayloadTooLarge(
            f"{what} has {len(body):,} bytes as JSON; at most {LARGEST:,} are allowed. "
            "Store the data elsewhere and pass its key."
        )
    return body


def loads(body: bytes) -> Any:
    """Return what dumps() was given. Raises CorruptMessage for anything else."""
    if len(body) > LARGEST:
        raise CorruptMessage(f"a message of {len(body):,} bytes is longer than any that is sent")
    decoder = _decoder if b"$" in body or b"\\u" in body else _plain_decoder
    try:
        text = body.decode().strip(" \t\n\r")
        value, end = decoder.raw_decode(text)  # decode() looks for spaces by regular expressions, which takes as long
        return value if end == len(text) else decoder.decode(text)
    except (ValueError, ArithmeticError, RecursionError, TypeError) as error:
        raise CorruptMessage(f"not a message: {type(error).__name__}: {error}"[:300]) from error


def encoded_error(error: BaseException) -> bytes:
    """Return the form in which an error is stored: the path of its class, and its traceback."""
    return encoded_traceback(path_of(type(error)), traceback_of(error))


def encoded_traceback(path: str, traceback: str) -> bytes:
    """See encoded_error()."""
    return encoded([path, traceback.encode("utf-8", "backslashreplace").decode()], "The error")


def loads_error(stored: bytes) -> tuple[str, str]:
    """Return the path and the traceback that encoded_traceback() was given. Raises CorruptMessage for anything else."""
    match loads(stored):
        case [str(path), str(traceback)]:
            return path, traceback
    raise CorruptMessage("not a stored error: a path and a traceback are expected")


def place(path: tuple[Any, ...]) -> str:
    """Return how a message names a place in a value: ``args[1]['user']``."""
    return str(path[0]) + "".join(f"[{part!a}]" for part in path[1:])


def _plain(value: Any, path: tuple[Any, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, (int, float)):
        return _number(value, path)
    if isinstance(value, (list, tuple, dict)) and len(path) > DEEPEST:
        raise NotSerializable(f"{path[0]} is nested more than {DEEPEST} deep, or holds itself.")
    if isinstance(value, (list, tuple)):
        return [_plain(item, (*path, number)) for number, item in enumerate(value)]
    if isinstance(value, dict):
        return {_key(key, path): _plain(item, (*path, key)) for key, item in value.items()}
    if isinstance(value, Decimal) and value.is_snan():
        raise NotSerializable(f"{place(path)} is {value}, with which nothing can be compared. Pass Decimal('NaN').")
    for kind, (tag, write) in _WRITE.items():
        if isinstance(value, kind):
            return {tag: write(value)}
    raise NotSerializable(f"{place(path)} is {shortened(value)}, which JSON can't hold.{_advice(value)}")


def _advice(value: Any) -> str:
    if isinstance(value, Promise):
        return " It is a lazy text: pass str() of it."
    return " Pass its primary key." if hasattr(value, "pk") else ""


def _text(value: str, path: tuple[Any, ...]) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotSerializable(f"{place(path)} is {shortened(value)}, which is not valid Unicode.") from None
    return value


def _number(value: float, path: tuple[Any, ...]) -> float:
    if isinstance(value, int):
        if not -_INT <= value < _INT:
            raise NotSerializable(f"{place(path)} is a whole number of over 64 bits. Pass it as text.")
    elif not math.isfinite(value):
        raise NotSerializable(f"{place(path)} is {value}, which JSON can't hold.")
    return value


def _key(key: Any, path: tuple[Any, ...]) -> str:
    if not isinstance(key, str):
        raise NotSerializable(f"{place(path)} has the key {shortened(key)}; JSON has only text as keys.")
    # A key of the caller never looks like a tag.
    return f"${key}" if _text(key, (*path, key)).startswith("$") else key


def _object(pairs: list[tuple[str, Any]]) -> Any:
    content = _plain_object(pairs)
    if not any(key.startswith("$") for key in content):
        return content
    if len(pairs) == 1 and pairs[0][0] in _READ:
        tag, text = pairs[0]
        return _READ[tag](text)
    if any(key.startswith("$") and not key.startswith("$$") for key in content):
        raise ValueError("an object has an unknown type")
    return {key.removeprefix("$"): value for key, value in content.items()}


def _plain_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("an object has the same key twice")
    return content


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode
_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse)
_plain_decoder = json.JSONDecoder(object_pairs_hook=_plain_object, parse_constant=_refuse)  # for a body without a "$"
