"""The origin of a visit: the site that a visitor came from, and the campaign that a link names."""

import re
from functools import lru_cache
from urllib.parse import parse_qsl

CAMPAIGN = ("utm_source", "utm_medium", "utm_campaign")
LONGEST_HOST = 253  # characters (RFC 1035)
LONGEST_WORD = 30  # characters of a source, a medium or a campaign
LONGEST_QUERY = 2048
MAX_FIELDS = 50

_HOST = re.compile(r"https?://(?:[^/?#@]*@)?([a-z0-9.-]+)(?::\d+)?(?:[/?#]|$)", re.IGNORECASE)
_UNWANTED = re.compile(r"[^\w.+ -]+")


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
