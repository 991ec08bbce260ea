"""A visitor of the site: real HTTP with cookies, forms and its own address."""

import http.client
import json
import re
from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import NamedTuple
from urllib.parse import urlencode

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
BOT = "rk_demo/1.0 (bot)"
NO_HEADERS: Mapping[str, str] = {}
LARGEST = 2_000_000  # bytes read of one answer
DATA = re.compile(r'<data (?:id="(\w+)" )?value="([^"]*)">')


class Page(NamedTuple):
    """The site's answer to a request."""

    path: str
    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def data(self) -> dict[str, str]:
        """Return the named figures on the page."""
        return {name: value for name, value in DATA.findall(self.text) if name}


class Visitor:
    """One browser. Each request has its own connection; network errors are raised."""

    def __init__(self, port: int, *, address: str = "", agent: str = BROWSER, timeout: float = 15.0) -> None:
        self.port = port
        self.timeout = timeout
        self.headers = {"User-Agent": agent, "Connection": "close"}
        if address:
            # The site trusts this machine as a proxy, so it takes this as the visitor's address.
            self.headers["X-Forwarded-For"] = address
        self.cookies: dict[str, str] = {}

    def get(self, path: str) -> Page:
        """Open a page; redirections are not followed."""
        return self._ask("GET", path)

    def post(self, path: str, **fields: str | int) -> Page:
        """Send a form. Without a CSRF token yet, open the log-in page first to get one."""
        if "csrftoken" not in self.cookies:
            self.get("/log-in/")
        fields["csrfmiddlewaretoken"] = self.cookies.get("csrftoken", "")
        return self._ask("POST", path, urlencode(fields))

    def send_json(self, path: str, content: object) -> Page:
        """Send JSON, with the CSRF token of the visitor's cookie."""
        return self._ask("POST", path, json.dumps(content), {"X-CSRFToken": self.cookies.get("csrftoken", "")})

    def log_in(self, name: str, password: str) -> bool:
        """Log in, and return whether it worked."""
        return self.post("/log-in/", username=name, password=password).status == 302

    def _ask(self, method: str, path: str, body: str | None = None, more: Mapping[str, str] = NO_HEADERS) -> Page:
        headers = self.headers | more
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if body is not None:
            headers["Content-Type"] = "application/json" if more else "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read(LARGEST).decode("utf-8", "replace")
        finally:
            connection.close()
        for line in response.headers.get_all("Set-Cookie", ()):
            self.cookies |= {name: morsel.value for name, morsel in SimpleCookie(line).items()}
        return Page(path, response.status, response.headers, text)
