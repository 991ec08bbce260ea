"""The middleware that applies the policies of the settings."""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

from redis_kit.throttling.http.guards import aanswer, answer
from redis_kit.throttling.policy_settings import policies


class ThrottleMiddleware:
    """Refuse what the policies don't allow, before anything after it in ``MIDDLEWARE`` is run.

    All policies that match a request are one call, counted by all or none. Stands after AuthenticationMiddleware where
    a policy is by user. An outage of the server is answered by the failure policies, and is never an error.
    """

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Answer the request, or refuse it."""
        guards = [policy.guard for policy in policies() if policy.is_for(request)]
        found: HttpResponseBase | Awaitable[HttpResponseBase]
        found = (aanswer if self.is_async else answer)(guards, request, self.get_response)
        return found
