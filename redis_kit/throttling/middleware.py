"""The middleware that applies the policies of the settings."""

from collections.abc import Awaitable

from django.http import HttpRequest, HttpResponseBase

from redis_kit.core.web.middleware import KitMiddleware
from redis_kit.throttling.http.guards import aanswer, answer
from redis_kit.throttling.http.policies import policies


class ThrottleMiddleware(KitMiddleware):
    """Refuse requests that the policies don't allow, before the middleware and views that follow.

    All policies that match a request count it together, or none does. Put it after AuthenticationMiddleware if a policy
    counts by user. When the server is unavailable, the failure policies answer; that is never an error.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Answer the request, or refuse it."""
        guards = [policy.guard for policy in policies() if policy.matches(request)]
        response: HttpResponseBase | Awaitable[HttpResponseBase]
        response = (aanswer if self.is_async else answer)(guards, request, self.get_response)
        return response
