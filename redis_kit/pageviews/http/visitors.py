"""The identity of a visitor, by the setting ``VISITOR``."""

import logging
from datetime import datetime
from secrets import compare_digest, token_urlsafe
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import patch_vary_headers

from redis_kit.core.errors import ConfigurationError
from redis_kit.core.keys import hashed
from redis_kit.core.web.client_address import client_address
from redis_kit.pageviews.rules import LONGEST_AGENT
from redis_kit.pageviews.settings import PageViewSettings

logger = logging.getLogger("redis_kit.pageviews")
COOKIE_NAME = "rk_visitor"
COOKIE_AGE = 365 * 86_400  # seconds
TOKEN_BYTES = 16
COOKIE_LENGTH = 22 + 1 + 22  # a token and a hash of 128 bits each
_warned = False


def visitor(
    request: HttpRequest, response: HttpResponseBase | None, *, options: PageViewSettings, user: Any, moment: datetime
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
