"""Identities: which calls a throttle counts together, found in a request."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string

from redis_kit.core.awaitables import Result
from redis_kit.core.errors import ConfigurationError, InvalidName, InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.text import did_you_mean, shortened
from redis_kit.core.web.client_address import client_address
from redis_kit.throttling.values.identity_shape import ADDRESS, USER, Shape

GRAMMAR = (
    "Use 'ip', 'user', 'user_or_ip', 'header:<name>', 'get:<name>', 'post:<name>', a callable or its dotted path, "
    "or a list of these to combine them."
)
NOT_ASYNC = "The throttle's key is a coroutine function, but the view is sync."
MOST_PATHS = 1000  # dotted paths that the system check imports

_VALID_NAMES = {
    "header": re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"),  # a token (RFC 9110)
    **dict.fromkeys(("get", "post"), re.compile(r"\S(?:.*\S)?", re.DOTALL)),
}

Find = Callable[[HttpRequest, Any], Any]
Spec = str | Callable[[HttpRequest], Any] | Sequence[str | Callable[[HttpRequest], Any]]

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
_PARTS: dict[str, Callable[[HttpRequest, str], str]] = {
    "header": lambda request, name: request.headers.get(name, ""),
    "get": lambda request, name: request.GET.get(name, ""),
    "post": lambda request, name: request.POST.get(name, ""),
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
        self._specs = specs
        self._needs_user = any(part in ("user", "user_or_ip") for part in specs)

    @property
    def shape(self) -> Shape:
        """Return how the identities of the key begin, for each of its parts."""
        return tuple(_starts(spec) for spec in self._specs)

    def find(self, request: HttpRequest) -> Flow[Any]:
        """Return the identity of a request. Raises TypeError in sync code if the key is a coroutine function."""
        user = (yield _User(request)) if self._needs_user else None
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
    if kind in _PARTS and _VALID_NAMES[kind].fullmatch(name):
        return lambda request, user: f"{kind}:{_PARTS[kind](request, name)}"
    if _is_path(text):
        note(text)
        loaded = lru_cache(maxsize=1)(load)
        return lambda request, user: loaded(text)(request)
    hint = did_you_mean(text, _NAMED)
    raise InvalidValue(" ".join(filter(None, (f"The key {shortened(spec)} is not known.", hint, GRAMMAR))))


def _is_path(text: str) -> bool:
    return "." in text and ":" not in text


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


class _User:
    """A step: the user of a request, or None."""

    __slots__ = ("request",)

    def __init__(self, request: HttpRequest) -> None:
        self.request = request

    def run(self, client: Any) -> Any:
        return getattr(self.request, "user", None)

    async def arun(self, client: Any) -> Any:
        # Reading a lazy user in async code would query the database; a user that a middleware set is already loaded.
        user = self.run(client)
        if isinstance(user, SimpleLazyObject) and hasattr(self.request, "auser"):
            return await self.request.auser()
        return user
