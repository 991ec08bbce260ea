"""The request that this thread or task answers, for log records that do not name one."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

current_request: ContextVar[HttpRequest | None] = ContextVar("redis_kit_current_request", default=None)


class LogRequestMiddleware:
    """Let records that are logged during a request have its path and its user. Put it first in ``MIDDLEWARE``."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Answer the request."""
        if self.is_async:
            return self._acall(request)
        token = current_request.set(request)
        try:
            response: HttpResponseBase = self.get_response(request)
            return response
        finally:
            current_request.reset(token)

    async def _acall(self, request: HttpRequest) -> HttpResponseBase:
        token = current_request.set(request)
        try:
            response: HttpResponseBase = await self.get_response(request)
            return response
        finally:
            current_request.reset(token)
