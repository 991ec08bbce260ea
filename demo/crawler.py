"""A crawler for the links of the site."""

import re
from collections import deque
from html import unescape
from urllib.parse import urljoin, urlsplit

from demo.visitor import Visitor

LINK = re.compile(r'(?:href|src)="([^"]*)"')
MOST = 200


def crawl(visitor: Visitor, start: str = "/") -> dict[str, int]:
    """Return the status of each address that the site's pages link to, including the start.

    The admin is opened, but its links are not followed: there is one for each row of the database. At most 200
    addresses.
    """
    statuses: dict[str, int] = {}
    waiting = deque([start])
    while waiting and len(statuses) < MOST:
        path = waiting.popleft()
        if path in statuses:
            continue
        page = visitor.get(path)
        statuses[path] = page.status
        links = [] if path.startswith("/admin") else LINK.findall(page.text)
        if page.status in (301, 302):
            links.append(page.headers["Location"])
        waiting.extend(local(path, link) for link in links if is_local(link))
    return statuses


def is_local(link: str) -> bool:
    """Return whether a link leads to another page of the site."""
    parts = urlsplit(unescape(link))
    return not parts.scheme and not parts.netloc and bool(parts.path)


def local(path: str, link: str) -> str:
    """Return the address that a link of a page leads to, without its fragment."""
    return urljoin(path, unescape(link)).partition("#")[0]
