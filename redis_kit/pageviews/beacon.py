"""The beacon: a request by which a browser reports a view of a page from a cache, a CDN or another server."""

import asyncio
from functools import cache

from django.core import signing
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, ResolverMatch, URLPattern, reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.pageviews.middleware import arecord, record
from redis_kit.pageviews.pages import Key, checked
from redis_kit.pageviews.settings import PageViewSettings

SALT = "redis_kit.pageviews.beacon"
LONGEST = 8192  # bytes of a request's body
ROUTE = "redis_kit_beacon"
INCLUDE = "Add path('', include('redis_kit.pageviews.urls')) to urlpatterns."


def page_token(name: str, key: Key | None = None) -> str:
    """Return the signed name of a page, or of an object by its key, for a page that Django does not render.

    It never expires. Raises InvalidName for a name that is not allowed.
    """
    return _signer().sign_object(checked(name if key is None else (name, key)))


def beacon_url() -> str:
    """Return the path of the beacon's view. Raises ConfigurationError if no URL leads to it."""
    try:
        return reverse(ROUTE)
    except NoReverseMatch as error:
        raise ConfigurationError(f"No URL leads to the beacon of page views. {INCLUDE}") from error


@csrf_exempt  # a page from a cache has no token; the origin is checked
@require_POST
def beacon(request: HttpRequest) -> HttpResponse:
    """Count a view of the page whose signed name is in the field ``page``, and answer 204 without a cookie.

    The status is 403 for a page of another host that is not in ``BEACON_ORIGINS``, 413 for a body of over 8192 bytes,
    and 400 without a valid page. The rules of the middleware about bots, prefetches, staff and opt-out hold.
    """
    page = _reported(request, conf.section(PageViewSettings))
    if isinstance(page, HttpResponse):
        return page
    record(request, None, page)
    return _done()


@csrf_exempt
@require_POST
async def abeacon(request: HttpRequest) -> HttpResponse:
    """See beacon()."""
    page = _reported(request, conf.section(PageViewSettings))
    if isinstance(page, HttpResponse):
        return page
    await arecord(request, None, page)
    return _done()


class BeaconPattern(URLPattern):
    """A URL that leads to the asynchronous view in an event loop, where the synchronous one would take a thread.

    With ``ATOMIC_REQUESTS`` it does not, since Django refuses asynchronous views then.
    """

    def resolve(self, path: str) -> ResolverMatch | None:
        """Return the view for a path."""
        match = super().resolve(path)
        is_atomic = any(database["ATOMIC_REQUESTS"] for database in connections.settings.values())
        if match and asyncio._get_running_loop() and not is_atomic:
            match.func = abeacon
        return match


def _reported(request: HttpRequest, options: PageViewSettings) -> tuple[str, str] | HttpResponse:
    """Return the name of the page and the key of its object, or the answer to a request that does not count."""
    if not _is_allowed(request, options):
        return HttpResponse("This origin may not count views.", status=403, content_type="text/plain")
    if not request.META.get("CONTENT_LENGTH", "").isdecimal() or int(request.META["CONTENT_LENGTH"]) > LONGEST:
        return HttpResponse(f"Send at most {LONGEST} bytes.", status=413, content_type="text/plain")
    try:
        name, key = _signer().unsign_object(request.POST.get("page", ""))
    except (signing.BadSignature, ValueError):
        return HttpResponse("The page is unknown.", status=400, content_type="text/plain")
    return name, key


def _done() -> HttpResponse:
    return HttpResponse(status=204, headers={"Cache-Control": "no-store"})


def _is_allowed(request: HttpRequest, options: PageViewSettings) -> bool:
    """Return whether a page of this host, or of ``BEACON_ORIGINS``, sent the request, by its header ``Origin``."""
    origin = request.META.get("HTTP_ORIGIN", "")
    # The scheme is left out, since a proxy may speak plain HTTP with this server.
    return origin in options.BEACON_ORIGINS or origin.partition("://")[2] == request.get_host()


@cache
def _signer() -> signing.Signer:
    return signing.Signer(salt=SALT)


conf.on_change(_signer.cache_clear, "SECRET_KEY", "SECRET_KEY_FALLBACKS")
