"""The base of the kit's middleware for requests."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest

from redis_kit.core import conf


class KitMiddleware:
    """Middleware that answers sync and async requests as they come: ``is_async`` says what ``get_response`` returns."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        conf.warn_unless_installed()
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        """Answer the request."""
        raise NotImplementedError
