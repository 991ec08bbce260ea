"""Identities: whose calls a throttle counts together, found in a request."""

from collections.abc import Callable
from functools import cache
from inspect import isawaitable, iscoroutine
from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string

from redis_kit.core.clientaddress import client_address
from redis_kit.core.errors import ConfigurationError, InvalidValue

GRAMMAR = "Use 'ip', 'user', 'user_or_ip', 'header:<name>', 'get:<name>', 'post:<name>', a callable or its dotted path."

Find = Callable[[HttpRequest, Any], Any]


def _ip(request: HttpRequest, user: Any) -> str:
    return f"ip:{client_address(request)}"


def _user(request: HttpRequest, user: Any) -> str:
    if user is None:
        raise ConfigurationError("The key 'user' needs request.user: add AuthenticationMiddleware to MIDDLEWARE.")
    return f"user:{user.pk}" if user.is_authenticated else "anonymous"


def _user_or_ip(request: HttpRequest, user: Any) -> str:
    return _user(request, user) if user is not None and user.is_authenticated else _ip(request, user)


_NAMED: dict[str, Find] = {"ip": _ip, "user": _user, "user_or_ip": _user_or_ip}
_PARTS: dict[str, Callable[[HttpRequest, str], str]] = {
    "header": lambda request, name: request.headers.get(name, ""),
    "get": lambda request, name: request.GET.get(name, ""),
    "post": lambda request, name: request.POST.get(name, ""),
}


class Key:
    """What the argument ``key`` stands for. Callers that send no such header or field count together as one.

    Raises InvalidValue for what is none of the allowed forms; a dotted path is imported at the first request.
    """

    def __init__(self, spec: str | Callable[[HttpRequest], Any]) -> None:
        self._find = _finder(spec)
        self._needs_user = spec in ("user", "user_or_ip")

    def of(self, request: HttpRequest) -> Any:
        """Return the identity behind a request."""
        found = self._find(request, getattr(request, "user", None) if self._needs_user else None)
        if isawaitable(found):
            if iscoroutine(found):
                found.close()
            raise TypeError("The throttle's key is a coroutine function, and the view is not one.")
        return found

    async def aof(self, request: HttpRequest) -> Any:
        """See of(). The key may be a coroutine function here."""
        found = self._find(request, await _current_user(request) if self._needs_user else None)
        return await found if isawaitable(found) else found


def _finder(spec: Any) -> Find:
    if callable(spec):
        return lambda request, user: spec(request)
    text = spec if isinstance(spec, str) else ""
    if text in _NAMED:
        return _NAMED[text]
    kind, _, name = text.partition(":")
    if name and kind in _PARTS:
        return lambda request, user: f"{kind}:{_PARTS[kind](request, name)}"
    if "." in text and ":" not in text:
        load = cache(import_string)
        return lambda request, user: load(text)(request)
    raise InvalidValue(f"The key {ascii(spec)[:80]} is not known. {GRAMMAR}")


async def _current_user(request: HttpRequest) -> Any:
    # A lazy user is read from the database by whoever looks at it first; one that a middleware set is there.
    user = getattr(request, "user", None)
    if isinstance(user, SimpleLazyObject) and hasattr(request, "auser"):
        return await request.auser()
    return user
