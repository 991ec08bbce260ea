"""The identity of a visitor, by the setting ``VISITOR``."""

import logging
from datetime import datetime
from secrets import token_urlsafe
from typing import Any

from django.http import HttpRequest, HttpResponseBase

from redis_kit.core.errors import ConfigurationError
from redis_kit.core.web.client_address import client_address
from redis_kit.pageviews.rules import LONGEST_AGENT
from redis_kit.pageviews.settings import PageViewSettings

logger = logging.getLogger("redis_kit.pageviews")
SALT = "redis_kit.pageviews"
_warned = False


def visitor(
    request: HttpRequest, response: HttpResponseBase, *, options: PageViewSettings, user: Any, moment: datetime
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
    return _by_cookie(request, response, options)


def _of_the_day(request: HttpRequest, moment: datetime) -> str:
    global _warned
    try:
        address = client_address(request)
    except ConfigurationError as error:
        address = ""
        if not _warned:
            _warned = True
            logger.warning("Visitors are identified by their browsers alone: %s", error)
    return f"{moment:%Y-%m-%d} {address} {request.META.get('HTTP_USER_AGENT', '')[:LONGEST_AGENT]}"


def _by_cookie(request: HttpRequest, response: HttpResponseBase, options: PageViewSettings) -> str:
    name, age = options.COOKIE_NAME, int(options.COOKIE_AGE)
    identity = request.get_signed_cookie(name, default=None, salt=SALT, max_age=age)
    if identity is None:
        identity = token_urlsafe(16)
        secure = request.is_secure()
        response.set_signed_cookie(name, identity, salt=SALT, max_age=age, secure=secure, httponly=True, samesite="Lax")
    return f"cookie {identity}"
