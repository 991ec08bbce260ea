"""The settings of page views."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from redis_kit.core.conf import Problem, Section

DAY = 86_400
_ORIGIN = re.compile(r"(?!https:.*:443$|http:.*:80$)https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[1-9][0-9]*)?")


@dataclass(frozen=True)
class PageViewSettings(Section):
    """The options of ``REDIS_KIT["PAGEVIEWS"]``."""

    name = "PAGEVIEWS"
    ranges = {
        "MAX_PAGES": (1, 1_000_000),
        "RETENTION": (DAY, 3660 * DAY),
        "HOUR_RETENTION": (DAY, 3660 * DAY),
    }
    policies = {"open": "numbers of views read as 0, and views outside the buffer are not counted"}

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
    #: The origins, beside the site's own, whose pages may report views to the beacon, such as ``https://www.example.com``.
    BEACON_ORIGINS: list[str] | tuple[str, ...] = ()
    #: The connection to count on.
    USING: str = "default"
    #: ``open`` reads 0 while Redis is unavailable or denies access, ``raise`` raises. The middleware never raises.
    ON_FAILURE: Literal["open", "raise"] = "open"

    def problems(self) -> Iterator[Problem]:
        """Yield the origins of the beacon that no browser sends."""
        for origin in self.BEACON_ORIGINS:
            if not _ORIGIN.fullmatch(origin):
                yield Problem(
                    "E006",
                    f"REDIS_KIT['PAGEVIEWS']['BEACON_ORIGINS'] holds {origin!r}, which no browser sends as an origin.",
                    "Write the scheme and the host, and a port unless it is the default, 443 or 80: "
                    "'https://www.example.com'.",
                )
