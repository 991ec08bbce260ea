"""The middleware that applies the policies of the settings."""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

from redis_kit.core import conf
from redis_kit.throttling.http.guards import aanswer, answer
from redis_kit.throttling.http.policies import policies


class ThrottleMiddleware:
    """Refuse requests that the policies don't allow, before the middleware and views that follow.

    All policies that match a request count it together, or none does. Put it after AuthenticationMiddleware if a policy
    counts by user. When the server is unavailable, the failure policies answer; that is never an error.
    """

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        conf.warn_unless_installed()
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Answer the request, or refuse it."""
        guards = [policy.guard for policy in policies() if policy.matches(request)]
        response: HttpResponseBase | Awaitable[HttpResponseBase]
        response = (aanswer if self.is_async else answer)(guards, request, self.get_response)
        return response
