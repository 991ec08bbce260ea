"""Fields of log lines about the request that this thread or task answers: its path, and the id of its user."""

from collections.abc import Callable, Mapping
from logging import LogRecord
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.utils.decorators import sync_and_async_middleware
from django.utils.functional import LazyObject, empty

from redis_kit.core import activity

LONGEST = 500  # characters


@sync_and_async_middleware
def log_requests(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Let what is logged during a request have its path and its user. Put it first in ``MIDDLEWARE``.

    That is in records of RedisHandler and in lines of JSONFormatter.
    """

    def answer(request: HttpRequest) -> Any:
        with activity.doing(fields=lambda: request_fields(request)):
            return get_response(request)

    async def answer_async(request: HttpRequest) -> Any:
        with activity.doing(fields=lambda: request_fields(request)):
            return await get_response(request)

    return answer_async if iscoroutinefunction(get_response) else answer


def fields_of(record: LogRecord) -> Mapping[str, Any]:
    """Return the fields of the work or request during which a record was logged, or of the request that it names."""
    fields = read() if (read := activity.current.get().fields) else {}
    request = getattr(record, "request", None)
    return fields if request is None else {**fields, **request_fields(request)}


def request_fields(request: Any) -> dict[str, str]:
    """Return ``path`` and ``user`` of a request, if they are known. A user who is not loaded stays so."""
    attributes = getattr(request, "__dict__", {})
    fields = {"path": str(attributes["path"])[:LONGEST]} if "path" in attributes else {}
    for name in ("_cached_user", "_acached_user", "user"):
        user = attributes.get(name)
        if isinstance(user, LazyObject):
            user = user.__dict__["_wrapped"]
        if user is not None and user is not empty and (pk := getattr(user, "pk", None)) is not None:
            fields["user"] = str(pk)[:LONGEST]
            break
    return fields
