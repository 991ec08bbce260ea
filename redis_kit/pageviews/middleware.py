"""The middleware that counts page views after the response is complete, and what it shares with the beacon."""

import logging
import re
from collections.abc import Awaitable
from datetime import datetime
from functools import lru_cache
from secrets import compare_digest, token_urlsafe
from typing import Any
from urllib.parse import parse_qsl

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import patch_vary_headers

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.core.keys import hashed
from redis_kit.core.web.client_address import client_address
from redis_kit.core.web.middleware import KitMiddleware
from redis_kit.pageviews import periods
from redis_kit.pageviews.batch import Event, ViewBatch, identified, log_once
from redis_kit.pageviews.buffer import buffer
from redis_kit.pageviews.counter import PageViews
from redis_kit.pageviews.pages import is_reported, page_of
from redis_kit.pageviews.rules import HEADERS, LONGEST_AGENT, is_bot, is_early, is_page_view, opted_out
from redis_kit.pageviews.settings import PageViewSettings

__all__ = ["PageViewMiddleware"]

logger = logging.getLogger("redis_kit.pageviews")

CAMPAIGN = ("utm_source", "utm_medium", "utm_campaign")
LONGEST_HOST = 253  # characters (RFC 1035)
LONGEST_WORD = 30  # characters of a source, a medium or a campaign
LONGEST_QUERY = 2048
MAX_FIELDS = 50
COOKIE_NAME = "rk_visitor"
COOKIE_AGE = 365 * 86_400  # seconds
TOKEN_BYTES = 16
COOKIE_LENGTH = 22 + 1 + 22  # a token and a hash of 128 bits each

_META = [(name, "HTTP_" + name.upper().replace("-", "_")) for name in HEADERS]
_HOST = re.compile(r"https?://(?:[^/?#@]*@)?([a-z0-9.-]+)(?::\d+)?(?:[/?#]|$)", re.IGNORECASE)
_UNWANTED = re.compile(r"[^\w.+ -]+")
_warned = False


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
        record(request, response)
        return response

    async def _acall(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await self.get_response(request)
        await arecord(request, response)
        return response


def record(request: HttpRequest, response: HttpResponseBase | None, page: tuple[str, str] | None = None) -> None:
    """Put a view into the buffer if it counts; with ``WRITE = "sync"``, count it now.

    The beacon gives the page that it reports, and no response: it sets no cookie. Nothing is raised: neither an error
    of Redis nor one of this process, such as one of the project's function that names a page.
    """
    try:
        options = conf.section(PageViewSettings)
        if not _counts(request, response, options):
            return
        user = getattr(request, "user", None) if _needs_user(options) else None
        event = event_of(request, response, page, user, options)
        if event and options.WRITE == "buffer":
            buffer.record(event)
        elif event:
            site = PageViews.site(using=options.USING, on_failure="open")
            _note(site.run_flow(ViewBatch([event], using=site.using).send(), if_open=None))
    except Exception as error:
        _failed(error)


async def arecord(request: HttpRequest, response: HttpResponseBase | None, page: tuple[str, str] | None = None) -> None:
    """See record()."""
    try:
        options, user = conf.section(PageViewSettings), None
        if not _counts(request, response, options):
            return
        if _needs_user(options):
            load = getattr(request, "auser", None)
            user = await load() if load else getattr(request, "user", None)
        event = event_of(request, response, page, user, options)
        if event and options.WRITE == "buffer":
            buffer.record(event)
        elif event:
            site = PageViews.site(using=options.USING, on_failure="open")
            _note(await site.arun_flow(ViewBatch([event], using=site.using).send(), if_open=None))
    except Exception as error:
        _failed(error)


def event_of(
    request: HttpRequest,
    response: HttpResponseBase | None,
    page: tuple[str, str] | None,
    user: Any,
    options: PageViewSettings,
) -> Event | None:
    """Return the view of a page; None for a page that does not count here, and for one of the staff if left out.

    The beacon sends the address of the page before and the query of its page as fields.
    """
    if response is None:
        referrer, query = request.POST.get("referrer", ""), request.POST.get("query", "")
    else:
        referrer, query = request.META.get("HTTP_REFERER", ""), request.META.get("QUERY_STRING", "")
        page = None if is_reported(request) else page_of(request)
    if page is None:
        return None
    moment = periods.now()
    if is_bot(request.META.get("HTTP_USER_AGENT", "")):
        return Event(moment, page[0], "", "", bot=True)
    if options.EXCLUDE_STAFF and getattr(user, "is_staff", False):
        return None
    visitor = identified(_identity(request, response, user, options, moment))
    host = referring_host(referrer, _own_host(request)) if referrer else ""
    return Event(moment, *page, visitor, host, campaign(query) if query else "")


def _counts(request: HttpRequest, response: HttpResponseBase | None, options: PageViewSettings) -> bool:
    """Return whether the headers are those of a page view. The beacon's script runs in pages that are shown."""
    headers = {name: request.META[key] for name, key in _META if key in request.META}
    if response is None:
        counts = not is_early(headers)
    else:
        content_type = response.headers.get("Content-Type", "")
        counts = is_page_view(request.method or "", response.status_code, content_type, headers)
    return counts and not (options.RESPECT_OPT_OUT and opted_out(headers))


def _needs_user(options: PageViewSettings) -> bool:
    return options.EXCLUDE_STAFF or options.VISITOR == "user"


def _note(refused: int | None) -> None:
    """Count a view that was not counted now. During an outage there is no answer."""
    if refused is None:
        buffer.drop("outage")
    else:
        buffer.drop("refused", refused)


def _failed(error: Exception) -> None:
    log_once(error, "A page view was not counted: %s")
    buffer.drop("failed")


def _own_host(request: HttpRequest) -> str:
    """Return the host that the client asked for: ``request.get_host()`` without the check that it is allowed."""
    meta = request.META
    host = meta.get("HTTP_X_FORWARDED_HOST", "") if settings.USE_X_FORWARDED_HOST else ""
    return host or meta.get("HTTP_HOST") or meta.get("SERVER_NAME", "")


def referring_host(referrer: str, own_host: str) -> str:
    """Return the host of a ``Referer`` in lower case, without ``www.``; "" for one's own host or no valid address.

    Only the host is returned, since the rest of an address may hold what a visitor searched for.
    """
    host = _host(referrer) if len(referrer) <= LONGEST_QUERY else ""
    return "" if host == own_host.partition(":")[0].lower().removeprefix("www.") else host


def campaign(query: str) -> str:
    """Return ``utm_source``, ``utm_medium`` and ``utm_campaign`` of a query as ``source / medium / campaign``.

    "" without a source. Text is in lower case, cut at 30 characters a part, and without punctuation.
    """
    if "utm_source=" not in query or len(query) > LONGEST_QUERY:
        return ""
    try:
        given = dict(parse_qsl(query, max_num_fields=MAX_FIELDS))
    except ValueError:
        return ""
    source, *others = (_word(given.get(name, "")) for name in CAMPAIGN)
    return " / ".join([source, *(other or "-" for other in others)]) if source else ""


@lru_cache(maxsize=1024)
def _host(referrer: str) -> str:
    match = _HOST.match(referrer)
    return match[1].lower().strip(".").removeprefix("www.")[:LONGEST_HOST] if match else ""


def _word(text: str) -> str:
    return _UNWANTED.sub(" ", text).strip().lower()[:LONGEST_WORD].strip()


def _identity(
    request: HttpRequest, response: HttpResponseBase | None, user: Any, options: PageViewSettings, moment: datetime
) -> str:
    """Return the identity of a request's visitor. If the request has none it is "", and only the view counts."""
    if options.VISITOR == "daily_salt":
        return _of_the_day(request, moment)
    if options.VISITOR == "session":
        key = getattr(getattr(request, "session", None), "session_key", None)
        return f"session {key}" if key else ""
    if options.VISITOR == "user":
        key = getattr(user, "pk", None)
        return "" if key is None else f"user {key}"
    return _by_cookie(request, response)


def _of_the_day(request: HttpRequest, moment: datetime) -> str:
    global _warned
    try:
        address = client_address(request)
    except ConfigurationError as error:
        address = ""
        if not _warned:
            _warned = True
            logger.warning("Visitors are identified by their browsers alone: %s", error)
    return f"{moment.date().isoformat()} {address} {request.META.get('HTTP_USER_AGENT', '')[:LONGEST_AGENT]}"


def _by_cookie(request: HttpRequest, response: HttpResponseBase | None) -> str:
    token = signed_token(request.COOKIES.get(COOKIE_NAME, ""))
    if response is None or _is_shared(response):
        return f"cookie {token}" if token else ""
    patch_vary_headers(response, ("Cookie",))
    if not token:
        token = token_urlsafe(TOKEN_BYTES)
        response.set_cookie(
            COOKIE_NAME,
            signed(token),
            max_age=COOKIE_AGE,
            secure=request.is_secure(),
            httponly=True,
            samesite="Lax",
        )
    return f"cookie {token}"


def _is_shared(response: HttpResponseBase) -> bool:
    """Return whether a cache that serves many visitors may store the response: a cookie would reach all of them."""
    directives = {part.strip() for part in response.headers.get("Cache-Control", "").lower().split(",")}
    names = {directive.partition("=")[0] for directive in directives}
    if names & {"public", "s-maxage"}:
        return True
    return ("max-age" in names or "Expires" in response.headers) and not directives & {"private", "no-store"}


def signed(token: str) -> str:
    """Return the value of a cookie: the token and its keyed BLAKE2b, a tenth of the work of Django's signatures."""
    return f"{token}.{hashed(f'cookie:{token}')}"


def signed_token(cookie: str) -> str:
    """Return the token of a cookie; "" unless its signature is right."""
    token, _, _ = cookie.partition(".")
    is_right = len(cookie) == COOKIE_LENGTH and cookie.isascii() and compare_digest(cookie, signed(token))
    return token if is_right else ""
