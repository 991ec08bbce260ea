"""What the kit has to know about page views."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from django.conf import settings
from django.core.checks import CheckMessage, Warning

from redis_kit.core import conf
from redis_kit.core.component import Component

DAY = 86_400


@dataclass(frozen=True)
class PageViewSettings(conf.Section):
    """The options of ``REDIS_KIT["PAGEVIEWS"]``."""

    name = "PAGEVIEWS"
    ranges = {
        "MAX_PAGES": (1, 1_000_000),
        "RETENTION": (DAY, 3660 * DAY),
        "HOUR_RETENTION": (DAY, 3660 * DAY),
        "COOKIE_AGE": (DAY, 400 * DAY),
    }

    #: Who counts as one visitor: the same address and agent on one day, kept as a keyed hash; the session; the user who
    #: is signed in; the bearer of a signed cookie.
    VISITOR: Literal["daily_salt", "session", "user", "cookie"] = "daily_salt"
    #: ``buffer`` counts off the response path, within a second; ``sync`` before the response leaves.
    WRITE: Literal["buffer", "sync"] = "buffer"
    #: How many distinct pages and objects a day may have; views of more are counted under ``(other)``.
    MAX_PAGES: int = 10_000
    #: True counts no views of signed-in users with ``is_staff``.
    EXCLUDE_STAFF: bool = False
    #: True counts no views of browsers that send ``Sec-GPC: 1`` or ``DNT: 1``.
    RESPECT_OPT_OUT: bool = False
    #: Seconds for which views and visitors by day and by month are kept.
    RETENTION: float = 400 * DAY
    #: Seconds for which views and visitors by hour are kept.
    HOUR_RETENTION: float = 8 * DAY
    #: The name of the cookie of ``VISITOR = "cookie"``.
    COOKIE_NAME: str = "rk_visitor"
    #: Seconds for which that cookie lasts.
    COOKIE_AGE: float = 365 * DAY
    #: The connection that counts.
    USING: str = "default"
    #: ``open`` reads 0 while Redis is away or denies access, ``raise`` raises. The middleware never raises.
    ON_FAILURE: Literal["open", "raise"] = "open"


class PageViews(Component):
    """Views and unique visitors of pages."""

    settings = PageViewSettings
    panels = ("redis_kit.pageviews.panel.PageViewsPanel",)

    def checks(self) -> Iterator[CheckMessage]:
        """Yield a warning where the visitor's identity comes from a middleware that is not there."""
        if "redis_kit.pageviews.middleware.PageViewMiddleware" not in settings.MIDDLEWARE:
            return
        options = conf.section(PageViewSettings)
        needed = {
            "session": "sessions.middleware.SessionMiddleware",
            "user": "auth.middleware.AuthenticationMiddleware",
        }
        wanted = {options.VISITOR, "user" if options.EXCLUDE_STAFF else ""} & needed.keys()
        for name in sorted(wanted):
            if not any(path.endswith(needed[name].rpartition(".")[2]) for path in settings.MIDDLEWARE):
                yield Warning(
                    f"REDIS_KIT['PAGEVIEWS'] needs the {name} of a request, but MIDDLEWARE has no {needed[name]}.",
                    hint=f"Add 'django.contrib.{needed[name]}'.",
                    id="redis_kit.W020",
                )
