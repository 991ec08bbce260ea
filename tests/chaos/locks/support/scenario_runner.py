"""Where scenes are played: three processes do what they are told, step by step."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.chaos.locks.support import database
from tests.chaos.locks.support.history import Event, Journal
from tests.chaos.locks.support.kinds import WHOLE
from tests.chaos.locks.support.processes import Arena, Process
from tests.fixtures.process import Server, wait_for
from tests.fixtures.proxy import Proxy

LEASE = 0.3  # seconds
CAST = "abc"


class Scene(NamedTuple):
    """What happens, on what kind of lock, and who of the cast has the bug."""

    happens: Callable[["Stage"], None]
    kind: str
    buggy: str


class Stage(Arena):
    """Three processes that come through a proxy, and one lock for each scene."""

    def __init__(self, folder: Path, *, server: Server, proxy: Proxy) -> None:
        super().__init__(folder, url=proxy.url, names=())
        self.server, self.proxy = server, proxy
        self.journal = Journal(folder / "stage.journal")
        self.count, self.name, self.run_async = 0, "", False
        self.whole: dict[str, Any] = {}  # the options with which one holder leaves room for no other
        self.cast: dict[str, Process] = {}
        self._fill()

    def _fill(self) -> None:
        for who in CAST:
            if who not in self.cast:
                self.cast[who] = self.start(f"{who}{len(self.processes)}", "--lease", str(LEASE))

    def play(self, scene: Scene, *, bug: str = "", run_async: bool = False) -> list[Event]:
        """Play a scene and return its history."""
        self.count, self.run_async = self.count + 1, run_async
        self.name, self.whole = f"{scene.kind}:{self.count}", WHOLE[scene.kind]
        database.add(self.database, [self.name])
        self.server.flush()  # a bug may have left anything
        try:
            for who in CAST:
                self.cast[who].do("sow", bug=bug if who in scene.buggy else "")
            scene.happens(self)
        except BaseException:
            for who in list(self.cast):
                self.kill(who)
            raise
        return [event for event in self.history() if event.name == self.name]

    def do(self, who: str, step: str, **arguments: Any) -> bool:
        """Let one take a step, and return whether it was successful."""
        self.tell(who, step, **arguments)
        return self.answer(who)

    def tell(self, who: str, step: str, **arguments: Any) -> None:
        """Let one take a step, and don't wait for it."""
        given = {"name": self.name, **arguments} if step == "take" else arguments
        self.cast[who].tell(step, run_async=self.run_async, **given)

    def answer(self, who: str) -> bool:
        """Return whether the step was successful."""
        return bool(self.cast[who].answer())

    def kill(self, who: str) -> None:
        """Kill one; another process takes the part."""
        self.cast.pop(who).kill()
        self._fill()

    @contextlib.contextmanager
    def paused(self, who: str) -> Iterator[None]:
        """Pause one for the length of a block."""
        began = time.monotonic_ns()
        self.cast[who].pause()
        yield
        self.cast[who].go_on()
        self.journal.note("fault", "pause", name=self.name, at=began, until=time.monotonic_ns())

    def wait_for_waiters(self, *whos: str) -> None:
        """Return when the server has them blocked, and they sleep."""
        with self.server.client() as client:
            wait_for(lambda: client.info("clients")["blocked_clients"] == len(whos))
        wait_for(lambda: all(self.cast[who].asleep for who in whos))

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        self.journal.close()

    @contextlib.contextmanager
    def one_reply_lost(self) -> Iterator[None]:
        """Lose the reply to the next command."""
        seen = self.proxy.replies
        self.proxy.set("drop_replies")
        yield
        wait_for(lambda: self.proxy.replies > seen)
        self.proxy.set("ok")
