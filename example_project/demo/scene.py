"""What the checks share: visitors who are logged in, and ways to say what is wrong."""

import time
from collections.abc import Callable
from typing import TypeVar

from example_project.demo.seed import ADMIN, PASSWORD
from example_project.demo.texts import TEXTS
from example_project.demo.visitor import BROWSER, Visitor

Found = TypeVar("Found")
ARTICLE = f"/read/{TEXTS[0].slug}/"
PATIENCE = 15.0  # seconds for something to happen


class Wrong(Exception):
    """A check did not find what it should."""


class Scene:
    """The site and its visitors."""

    def __init__(self, port: int, first_page: float) -> None:
        self.port, self.first_page = port, first_page
        self.readers: dict[str, Visitor] = {}

    def stranger(self, place: int, agent: str = BROWSER) -> Visitor:
        """Return a visitor with an address of its own."""
        return Visitor(self.port, address=f"192.0.2.{place}", agent=agent)

    def reader(self, name: str, password: str = PASSWORD) -> Visitor:
        """Return a reader who is logged in."""
        if name not in self.readers:
            reader = self.stranger(200 + len(self.readers))
            expect(reader.log_in(name, password), f"{name} could not log in")
            self.readers[name] = reader
        return self.readers[name]

    def admin(self) -> Visitor:
        """Return the administrator."""
        return self.reader(ADMIN, ADMIN)


def expect(condition: object, message: str | Callable[[], str]) -> None:
    """Raise Wrong unless the condition holds."""
    if not condition:
        raise Wrong(message if isinstance(message, str) else message())


def wait_for(condition: Callable[[], Found], message: str | Callable[[], str]) -> Found:
    """Return the condition's first true answer. Raises Wrong when there is none in time."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        expect(time.monotonic() < deadline, message)
        time.sleep(0.02)
    return found
