"""From a request to an event, and from an event to Redis: what the middleware and the beacon share."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from redis_kit.core.errors import PermissionDenied, PoolExhausted
from redis_kit.core.primitive import Primitive
from redis_kit.pageviews import periods
from redis_kit.pageviews.batch import count_one
from redis_kit.pageviews.buffer import buffer
from redis_kit.pageviews.errors import log_once
from redis_kit.pageviews.http.origins import campaign, referring_host
from redis_kit.pageviews.http.visitors import visitor
from redis_kit.pageviews.pages import SITE
from redis_kit.pageviews.rules import HEADERS, is_bot
from redis_kit.pageviews.settings import PageViewSettings
from redis_kit.pageviews.tally import Event, identified

_META = [(name, "HTTP_" + name.upper().replace("-", "_")) for name in HEADERS]


class _Writer(Primitive):
    """Writes one event at a time, and never raises because of Redis."""

    component, settings = "pageviews", PageViewSettings
    answered = (PoolExhausted, PermissionDenied)

    def policy(self) -> str:
        return "open"

    def write(self, event: Event) -> str:
        """Return why the event was dropped, as a field of ``Dropped``; "" if it was counted."""
        return self.run_flow(count_one(event, using=self.using), if_open="outage")

    async def awrite(self, event: Event) -> str:
        """See write()."""
        return await self.arun_flow(count_one(event, using=self.using), if_open="outage")


def headers_of(request: HttpRequest) -> dict[str, str]:
    """Return those headers of a request that the rules read."""
    meta = request.META
    return {name: meta[key] for name, key in _META if key in meta}


def needs_user(options: PageViewSettings) -> bool:
    """Return whether the user of a request must be loaded."""
    return options.EXCLUDE_STAFF or options.VISITOR == "user"


async def auser(request: HttpRequest) -> Any:
    """Return the user of a request in an event loop; None without the middleware of users."""
    load = getattr(request, "auser", None)
    return await load() if load else getattr(request, "user", None)


def event_of(
    request: HttpRequest,
    response: HttpResponseBase | None,
    page: tuple[str, str],
    *,
    user: Any,
    referrer: str,
    query: str,
    options: PageViewSettings,
) -> Event | None:
    """Return the view of a page by this request; None if the user is of the staff, whose views are left out.

    Without a response no cookie is set. ``referrer`` is the address of the page before. ``query`` may have the fields
    ``utm_source``, ``utm_medium`` and ``utm_campaign``.
    """
    if is_bot(request.META.get("HTTP_USER_AGENT", "")):
        return Event(periods.now(), page[0], "", "", bot=True)
    if options.EXCLUDE_STAFF and getattr(user, "is_staff", False):
        return None
    moment = periods.now()
    identity = visitor(request, response, options=options, user=user, moment=moment)
    host = referring_host(referrer, _own_host(request)) if referrer else ""
    return Event(moment, *page, identified(identity), host, campaign(query) if query else "")


def record(event: Event, options: PageViewSettings) -> None:
    """Put an event into the buffer; with ``WRITE = "sync"``, count it now."""
    if options.WRITE == "buffer":
        buffer.record(event)
    else:
        _note(_Writer(SITE, using=options.USING).write(event))


async def arecord(event: Event, options: PageViewSettings) -> None:
    """See record()."""
    if options.WRITE == "buffer":
        buffer.record(event)
    else:
        _note(await _Writer(SITE, using=options.USING).awrite(event))


def failed(error: Exception) -> None:
    """Note an error of this process, such as one of the project's function that names a page."""
    log_once(error, "A page view was not counted: %s")
    buffer.drop("failed")


def _own_host(request: HttpRequest) -> str:
    """Return the host that the client asked for: ``request.get_host()`` without the check that it is allowed."""
    meta = request.META
    host = meta.get("HTTP_X_FORWARDED_HOST", "") if settings.USE_X_FORWARDED_HOST else ""
    return host or meta.get("HTTP_HOST") or meta.get("SERVER_NAME", "")


def _note(dropped: str) -> None:
    if dropped:
        buffer.drop(dropped)
