"""The middleware that counts page views, after the response is complete."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

from redis_kit.core import conf
from redis_kit.pageviews import periods
from redis_kit.pageviews.batch import Event, identified
from redis_kit.pageviews.buffer import buffer
from redis_kit.pageviews.counter import PageViews
from redis_kit.pageviews.pages import page_of
from redis_kit.pageviews.rules import HEADERS, is_bot, is_page_view, opted_out
from redis_kit.pageviews.settings import PageViewSettings
from redis_kit.pageviews.visitors import visitor

logger = logging.getLogger("redis_kit.pageviews")
_META = [(name, "HTTP_" + name.upper().replace("-", "_")) for name in HEADERS]


class PageViewMiddleware:
    """Count the pages that people see. Put it first in ``MIDDLEWARE``, so that it sees the final response.

    Never raises, and never waits for a server unless ``WRITE`` is ``sync``.
    """

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        conf.warn_unless_installed()
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Answer the request and count it."""
        if self.is_async:
            return self._acall(request)
        response: HttpResponseBase = self.get_response(request)
        try:
            options = conf.section(PageViewSettings)
            if _counts(request, response, options):
                user = getattr(request, "user", None) if _needs_user(options) else None
                if event := _unbuffered(_event(request, response, options, user), options):
                    _note(_page(event).record(event.visitor, at=event.moment))
        except Exception:
            _failed()
        return response

    async def _acall(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await self.get_response(request)
        try:
            options = conf.section(PageViewSettings)
            if _counts(request, response, options):
                user = await _auser(request) if _needs_user(options) else None
                if event := _unbuffered(_event(request, response, options, user), options):
                    _note(await _page(event).arecord(event.visitor, at=event.moment))
        except Exception:
            _failed()
        return response


def _counts(request: HttpRequest, response: HttpResponseBase, options: PageViewSettings) -> bool:
    if request.method != "GET" or response.status_code != 200:
        return False
    meta = request.META
    headers = {name: meta[key] for name, key in _META if key in meta}
    content_type = response.headers.get("Content-Type", "")
    if not is_page_view(request.method, response.status_code, content_type, headers):
        return False
    return not is_bot(meta.get("HTTP_USER_AGENT", "")) and not (options.RESPECT_OPT_OUT and opted_out(headers))


def _event(request: HttpRequest, response: HttpResponseBase, options: PageViewSettings, user: Any) -> Event | None:
    page = page_of(request)
    if page is None or (options.EXCLUDE_STAFF and getattr(user, "is_staff", False)):
        return None
    moment = periods.now()
    identity = visitor(request, response, options=options, user=user, moment=moment)
    return Event(moment, *page, identified(identity))


def _unbuffered(event: Event | None, options: PageViewSettings) -> Event | None:
    """Put the event into the buffer, or return it if it has to be counted before the response leaves."""
    if event and options.WRITE == "buffer":
        buffer.record(event)
        return None
    return event


def _needs_user(options: PageViewSettings) -> bool:
    return options.EXCLUDE_STAFF or options.VISITOR == "user"


async def _auser(request: HttpRequest) -> Any:
    auser = getattr(request, "auser", None)
    return await auser() if auser else getattr(request, "user", None)


def _page(event: Event) -> PageViews:
    return PageViews(event.page, event.key or None, on_failure="open")


def _note(dropped: str) -> None:
    if dropped:
        buffer.drop(dropped)


def _failed() -> None:
    logger.exception("A page view was not counted.")
    buffer.drop("failed")
