"""The rules for page views and bots, as plain functions of the headers of a request and its response.

They need no request object, so that they work for log files too.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

EARLY = ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz")  # headers that announce a prefetch
# The headers that is_page_view() and opted_out() read.
HEADERS = (*EARLY, "Sec-Fetch-Dest", "Sec-GPC", "DNT")
LONGEST_AGENT = 512

_EARLY = re.compile(r"prefetch|prerender|preview", re.IGNORECASE)
# Parts of the agents of programs, in lower case. "bot" alone matches four of five.
BOTS = (
    *("bot", "crawl", "spider", "slurp", "archiver", "scraper", "scrapy", "scanner", "fetcher", "monitor", "checker"),
    *("validator", "indexer", "uptime", "pingdom", "statuscake", "preview", "feed", "headless", "phantomjs"),
    *("lighthouse", "pagespeed", "ptst/", "gtmetrix", "google-", "googleother", "apis-google", "mediapartners"),
    *("duplexweb", "facebookexternalhit", "facebookcatalog", "meta-external", "whatsapp/", "embedly", "quora link"),
    *("skypeuripreview", "slack-img", "yandex.com", "chatgpt", "perplexity", "claude-", "anthropic", "cohere-"),
    *("ia_archiver", "heritrix", "nutch", "ahrefs", "semrush", "dataprovider", "netcraft", "zgrab", "masscan", "nmap"),
    *("nikto", "sqlmap", "nuclei", "curl/", "wget/", "httpie", "postman", "insomnia", "python", "aiohttp", "httpx"),
    *("java/", "okhttp", "apache-http", "http-client", "http_client", "httpclient", "go-http", "libwww", "lwp::"),
    *("ruby", "php/", "guzzle", "axios", "node-fetch", "node.js", "undici"),
    *("dart/", "reqwest", "powershell", "winhttp"),
    *("apachebench", "k6/", "jmeter", "gatling", "locust", "siege/", "vegeta", "wrk/", "hey/", "load test"),
)
_NOT_BOTS = ("cubot",)  # a manufacturer of phones
_WHOLE = ("node", "got", "java")


def is_page_view(method: str, status: int, content_type: str, headers: Mapping[str, str]) -> bool:
    """Return whether a person saw a page: a GET that was answered with 200 and HTML, and not prefetched.

    A 304 has no content type. It counts if the browser says that a person opens a document. Browsers announce
    prefetches and prerenders in ``Sec-Purpose`` (older ones in ``Purpose`` or ``X-Moz``). They set ``Sec-Fetch-Dest``,
    to another value than ``document`` if a script or a frame makes the request.
    """
    if method != "GET" or not (status == 304 or (status == 200 and _is_html(content_type))):
        return False
    if headers.get("Sec-Fetch-Dest", "document" if status == 200 else "") != "document":
        return False
    return not is_early(headers)


def is_early(headers: Mapping[str, str]) -> bool:
    """Return whether the browser loads the page before, or without, a person who sees it."""
    return any(_EARLY.search(headers[name]) for name in EARLY if name in headers)


def is_bot(agent: str) -> bool:
    """Return whether the ``User-Agent`` is that of a program: empty, or with one of the words in ``BOTS``."""
    return _is_bot(agent[:LONGEST_AGENT])


def opted_out(headers: Mapping[str, str]) -> bool:
    """Return whether the browser opts out of tracking, by Global Privacy Control or ``DNT``."""
    return headers.get("Sec-GPC") == "1" or headers.get("DNT") == "1"


@lru_cache(maxsize=64)
def _is_html(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "text/html"


@lru_cache(maxsize=4096)
def _is_bot(agent: str) -> bool:
    text = agent.lower()
    for name in _NOT_BOTS:
        text = text.replace(name, "")
    return text.strip() in ("", *_WHOLE) or any(word in text for word in BOTS)
