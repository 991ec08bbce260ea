"""The middleware that counts page views, after the response is complete."""

from collections.abc import Awaitable
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponseBase

from redis_kit.core.web.middleware import KitMiddleware
from redis_kit.pageviews.http.events import arecord, event_of, headers_of, record
from redis_kit.pageviews.pages import is_reported, page_of
from redis_kit.pageviews.rules import is_page_view, opted_out
from redis_kit.pageviews.settings import PageViewSettings
from redis_kit.pageviews.tally import Event


class PageViewMiddleware(KitMiddleware):
    """Count the pages that people see. Put it first in ``MIDDLEWARE``, so that it sees the final response.

    Never raises. Never waits for a server, unless ``WRITE`` is ``sync``: that takes a round trip for each view.
    """

    counts_page_views = True  # also of subclasses, for the system checks

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Answer the request and count it."""
        request.counts_page_views = True  # type: ignore[attr-defined]  # for the tag of the beacon
        if self.is_async:
            return self._acall(request)
        response: HttpResponseBase = self.get_response(request)
        record(request, partial(_counts, request, response), partial(_event, request, response))
        return response

    async def _acall(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await self.get_response(request)
        await arecord(request, partial(_counts, request, response), partial(_event, request, response))
        return response


def _counts(request: HttpRequest, response: HttpResponseBase, options: PageViewSettings) -> bool:
    if request.method != "GET" or response.status_code not in (200, 304):
        return False
    headers = headers_of(request)
    if not is_page_view(request.method, response.status_code, response.headers.get("Content-Type", ""), headers):
        return False
    return not (options.RESPECT_OPT_OUT and opted_out(headers))


def _event(request: HttpRequest, response: HttpResponseBase, user: Any, options: PageViewSettings) -> Event | None:
    page, meta = page_of(request), request.META
    if page is None or is_reported(request):
        return None
    referrer, query = meta.get("HTTP_REFERER", ""), meta.get("QUERY_STRING", "")
    return event_of(request, response, page, user=user, referrer=referrer, query=query, options=options)
