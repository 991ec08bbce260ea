"""The settings of page views."""

from dataclasses import dataclass
from typing import Literal

from redis_kit.core.conf import Section

DAY = 86_400


@dataclass(frozen=True)
class PageViewSettings(Section):
    """The options of ``REDIS_KIT["PAGEVIEWS"]``."""

    name = "PAGEVIEWS"
    ranges = {
        "MAX_PAGES": (1, 1_000_000),
        "RETENTION": (DAY, 3660 * DAY),
        "HOUR_RETENTION": (DAY, 3660 * DAY),
        "TRENDING_HALF_LIFE": (60, 30 * DAY),
        "COOKIE_AGE": (DAY, 400 * DAY),
    }
    policies = {"open": "views are not counted, and numbers of views read as 0"}

    #: The identity of a visitor: a keyed hash of address and agent that is new each day; the session; the user who is
    #: signed in; or a signed cookie.
    VISITOR: Literal["daily_salt", "session", "user", "cookie"] = "daily_salt"
    #: ``buffer`` counts off the response path, within a second; ``sync`` before the response leaves.
    WRITE: Literal["buffer", "sync"] = "buffer"
    #: The number of distinct pages and objects per day; views of further ones are counted under ``(other)``.
    MAX_PAGES: int = 10_000
    #: True does not count views of signed-in users with ``is_staff``.
    EXCLUDE_STAFF: bool = False
    #: True does not count views of browsers that send ``Sec-GPC: 1`` or ``DNT: 1``.
    RESPECT_OPT_OUT: bool = False
    #: Seconds for which views and visitors by day and by month are stored.
    RETENTION: float = 400 * DAY
    #: Seconds for which views and visitors by hour are stored.
    HOUR_RETENTION: float = 8 * DAY
    #: Seconds after which a view counts half in ``trending()``.
    TRENDING_HALF_LIFE: float = 6 * 3600
    #: The name of the cookie of ``VISITOR = "cookie"``.
    COOKIE_NAME: str = "rk_visitor"
    #: The age of that cookie in seconds.
    COOKIE_AGE: float = 365 * DAY
    #: The connection to count on.
    USING: str = "default"
    #: ``open`` reads 0 while Redis is unavailable or denies access, ``raise`` raises. The middleware never raises.
    ON_FAILURE: Literal["open", "raise"] = "open"
