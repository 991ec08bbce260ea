"""Identities: which calls a throttle counts together, how keys spell them, and how they are masked."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string

from redis_kit.core.awaitables import LocalCall, Result
from redis_kit.core.errors import ConfigurationError, InvalidName, InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.text import did_you_mean, shortened
from redis_kit.core.web.client_address import INVALID, client_address, grouped, parse

GRAMMAR = (
    "Use 'ip', 'user', 'user_or_ip', 'header:<name>', 'get:<name>', 'post:<name>', a callable or its dotted path, "
    "or a list of these to combine them."
)
NOT_ASYNC = "The throttle's key is a coroutine function, but the view is sync."
MOST_PATHS = 1000  # dotted paths that the system check imports

Find = Callable[[HttpRequest, Any], Any]
Spec = str | Callable[[HttpRequest], Any] | Sequence[str | Callable[[HttpRequest], Any]]

ADDRESS, USER = "ip:", "user:"
ADDRESSES = (ADDRESS, "ident:")  # kinds whose values may be addresses

#: For each part of an identity, how it may begin; an empty tuple for any text.
Shape = tuple[tuple[str, ...], ...]

_paths: dict[str, None] = {}
_STARTS = {"ip": (ADDRESS,), "user": (USER, "anonymous"), "user_or_ip": (USER, ADDRESS)}


def _ip(request: HttpRequest, user: Any) -> str:
    return f"ip:{client_address(request)}"


def _user(request: HttpRequest, user: Any) -> str:
    if user is None:
        raise ConfigurationError(
            "The key 'user' needs request.user: put AuthenticationMiddleware into MIDDLEWARE, before the throttle."
        )
    return f"user:{user.pk}" if user.is_authenticated else "anonymous"


def _user_or_ip(request: HttpRequest, user: Any) -> str:
    return _user(request, user) if user is not None and user.is_authenticated else _ip(request, user)


_NAMED: dict[str, Find] = {"ip": _ip, "user": _user, "user_or_ip": _user_or_ip}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110
_FIELD = re.compile(r"\S(?:.*\S)?", re.DOTALL)
# For each kind of a part of the request, its valid names and how its value is read.
_PARTS: dict[str, tuple[re.Pattern[str], Callable[[HttpRequest, str], str]]] = {
    "header": (_TOKEN, lambda request, name: request.headers.get(name, "")),
    "get": (_FIELD, lambda request, name: request.GET.get(name, "")),
    "post": (_FIELD, lambda request, name: request.POST.get(name, "")),
}


class IdentityKey:
    """The argument ``key``: how the identity is found in a request.

    Requests without the header or field of a key are one identity. A list or tuple combines its keys: ``["ip",
    "post:email"]`` counts each pair separately. A dotted path is imported at the first request, since its module may
    define the function later; ``manage.py check`` imports it too. Raises InvalidValue for anything else.
    """

    def __init__(self, spec: Spec) -> None:
        specs = list(spec) if isinstance(spec, (list, tuple)) else [spec]
        if not specs:
            raise InvalidValue(f"The key is an empty list. {GRAMMAR}")
        self._finds = [_finder(part) for part in specs]
        #: How the identities of the key begin, for each of its parts.
        self.shape: Shape = tuple(map(_starts, specs))
        self._needs_user = any(part in ("user", "user_or_ip") for part in specs)

    def find(self, request: HttpRequest) -> Flow[Any]:
        """Return the identity of a request. Raises TypeError in sync code if the key is a coroutine function."""
        user = (yield LocalCall(_user_of, _auser_of, request)) if self._needs_user else None
        parts = []
        for find in self._finds:
            parts.append((yield Result(find(request, user), NOT_ASYNC)))
        return _joined(parts)


def load(path: str) -> Callable[[HttpRequest], Any]:
    """Return the function of a dotted path. Raises ConfigurationError."""
    try:
        function = import_string(path)
    except ImportError as error:
        raise ConfigurationError(f"The key {path!r} can't be imported: {error}.") from error
    if not callable(function):
        raise ConfigurationError(f"The key {path!r} is not a function.")
    return function  # type: ignore[no-any-return]


def note(path: str) -> None:
    """Add a dotted path to those that the system check imports."""
    if len(_paths) < MOST_PATHS:
        _paths[path] = None


def paths() -> list[str]:
    """Return the dotted paths of the keys that this process has built."""
    return list(_paths)


def _finder(spec: Any) -> Find:
    if callable(spec):
        return lambda request, user: spec(request)
    text = spec if isinstance(spec, str) else ""
    if text in _NAMED:
        return _NAMED[text]
    kind, _, name = text.partition(":")
    if kind in _PARTS and _PARTS[kind][0].fullmatch(name):
        value = _PARTS[kind][1]
        return lambda request, user: f"{kind}:{value(request, name)}"
    if is_path(text):
        note(text)
        loaded = lru_cache(maxsize=1)(load)
        return lambda request, user: loaded(text)(request)
    hint = did_you_mean(text, _NAMED)
    raise InvalidValue(" ".join(filter(None, (f"The key {shortened(spec)} is not known.", hint, GRAMMAR))))


def is_path(value: Any) -> bool:
    """Return whether a key is a dotted path."""
    return isinstance(value, str) and "." in value and ":" not in value


def _starts(spec: Any) -> tuple[str, ...]:
    kind = spec.partition(":")[0] if isinstance(spec, str) else ""
    return _STARTS.get(kind) or ((f"{kind}:",) if kind in _PARTS else ())


def _joined(parts: list[Any]) -> Any:
    """Return one identity for several parts. No two lists give the same text, whatever a client puts into a part."""
    if len(parts) == 1:
        return parts[0]
    wrong = [part for part in parts if isinstance(part, bool) or not isinstance(part, (str, int)) or part == ""]
    if wrong:
        raise InvalidName(f"Each part of an identity must be a non-empty string or an integer, not {wrong[0]!r}.")
    return " ".join(str(part).replace("%", "%25").replace(" ", "%20") for part in parts)


def _user_of(request: HttpRequest) -> Any:
    return getattr(request, "user", None)


async def _auser_of(request: HttpRequest) -> Any:
    # Reading a lazy user in async code would query the database; a user that a middleware set is already loaded.
    user = _user_of(request)
    if isinstance(user, SimpleLazyObject) and hasattr(request, "auser"):
        return await request.auser()
    return user


def _address(text: str) -> str:
    if text == INVALID:
        return text
    address = parse(text.removesuffix("/64"))
    return grouped(address) if address else ""


def _primary_key(text: str) -> str:
    try:
        return str(get_user_model()._meta.pk.to_python(text)) if text else ""
    except (ValidationError, ValueError, TypeError):
        return ""
    except ImproperlyConfigured:  # the users of the requests are not Django's
        return text


#: For a kind, the function that spells a value as keys do; it returns empty text for a value that no key makes.
SPELLINGS: dict[str, Callable[[str], str]] = {ADDRESS: _address, USER: _primary_key}


def has_any_text(shapes: Iterable[Shape]) -> bool:
    """Return whether a part of an identity may be any text."""
    return any(() in shape for shape in shapes)


def suggestion(identity: str, shapes: Iterable[Shape]) -> str | None:
    """Return the identity that was probably meant, "" if none is likely; None if a key may make this one."""
    shapes = [shape for shape in shapes if any(shape)]  # a key that is a function alone may make anything
    candidates = []
    for shape in shapes:
        parts = identity.split(" ") if len(shape) > 1 else [identity]
        completed = list(map(_completed, parts, shape))
        if len(parts) == len(shape) and all(completed):
            candidates.append(" ".join(completed))
    if not shapes or identity in candidates:
        return None
    return min(candidates, key=lambda each: not _address(identity) or ADDRESS not in each, default="")


def _spelled(part: str, starts: tuple[str, ...]) -> str:
    """Return a part as keys spell it; empty text if no key makes it."""
    start = next((start for start in starts if part.startswith(start)), None)
    if start is None or start not in SPELLINGS:
        return part if start else ""
    value = SPELLINGS[start](part.removeprefix(start))
    return f"{start}{value}" if value else ""


def _completed(part: str, starts: tuple[str, ...]) -> str:
    """Return a part with the kind that it probably has; empty text for an address or a user in place of the other."""
    if not starts:
        return part
    if spelled := _spelled(part, starts):
        return spelled
    address = _address(part.removeprefix(ADDRESS))
    if address and ADDRESS in starts:
        return f"{ADDRESS}{address}"
    kinds = [start for start in starts if start.endswith(":")]
    if kinds == [USER if address else ADDRESS]:
        return ""
    if ":" in part and not _address(part):
        part = part.partition(":")[2]
    values = ADDRESSES if _address(part) else (USER,)
    return _spelled(f"{next((kind for kind in kinds if kind in values), kinds[0])}{part}", starts)


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
