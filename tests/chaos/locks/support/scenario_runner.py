"""Where scenarios run: three processes obey commands, step by step."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.chaos.locks.support import database
from tests.chaos.locks.support.history import Event, HistoryFile
from tests.chaos.locks.support.kinds import WHOLE
from tests.chaos.locks.support.processes import Process, Workspace
from tests.fixtures.process import Server, wait_for
from tests.fixtures.proxy import Proxy

LEASE = 0.3  # seconds
WORKERS = "abc"


class Scenario(NamedTuple):
    """The steps, the kind of lock, and the workers that have the bug."""

    steps: Callable[["ScenarioRunner"], None]
    kind: str
    buggy: str


class ScenarioRunner(Workspace):
    """Three processes that come through a proxy, and one lock for each scenario."""

    def __init__(self, folder: Path, *, server: Server, proxy: Proxy) -> None:
        super().__init__(folder, url=proxy.url, names=())
        self.server, self.proxy = server, proxy
        self.history_file = HistoryFile(folder / "scenarios.history")
        self.count, self.name, self.run_async = 0, "", False
        self.whole: dict[str, Any] = {}  # the options with which one holder leaves room for no other
        self.process_of: dict[str, Process] = {}
        self._fill()

    def _fill(self) -> None:
        for worker in WORKERS:
            if worker not in self.process_of:
                self.process_of[worker] = self.start(f"{worker}{len(self.processes)}", "--lease", str(LEASE))

    def run(self, scenario: Scenario, *, bug: str = "", run_async: bool = False) -> list[Event]:
        """Run a scenario and return its history."""
        self.count, self.run_async = self.count + 1, run_async
        self.name, self.whole = f"{scenario.kind}:{self.count}", WHOLE[scenario.kind]
        database.add(self.database, [self.name])
        self.server.flush()  # a bug may have left anything
        try:
            for worker in WORKERS:
                self.process_of[worker].do("sow", bug=bug if worker in scenario.buggy else "")
            scenario.steps(self)
        except BaseException:
            for worker in list(self.process_of):
                self.kill(worker)
            raise
        return [event for event in self.history() if event.name == self.name]

    def do(self, worker: str, step: str, **arguments: Any) -> bool:
        """Let one take a step, and return whether it was successful."""
        self.tell(worker, step, **arguments)
        return self.answer(worker)

    def tell(self, worker: str, step: str, **arguments: Any) -> None:
        """Let one take a step, and don't wait for it."""
        given = {"name": self.name, **arguments} if step == "take" else arguments
        self.process_of[worker].tell(step, run_async=self.run_async, **given)

    def answer(self, worker: str) -> bool:
        """Return whether the step was successful."""
        return bool(self.process_of[worker].answer())

    def kill(self, worker: str) -> None:
        """Kill one; another process takes the part."""
        self.process_of.pop(worker).kill()
        self._fill()

    @contextlib.contextmanager
    def paused(self, worker: str) -> Iterator[None]:
        """Pause one for the length of a block."""
        began = time.monotonic_ns()
        self.process_of[worker].pause()
        yield
        self.process_of[worker].go_on()
        self.history_file.note("fault", "pause", name=self.name, at=began, until=time.monotonic_ns())

    def wait_for_waiters(self, *workers: str) -> None:
        """Return when the server has them blocked, and they sleep."""
        with self.server.client() as client:
            wait_for(lambda: client.info("clients")["blocked_clients"] == len(workers))
        wait_for(lambda: all(self.process_of[worker].asleep for worker in workers))

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        self.history_file.close()

    @contextlib.contextmanager
    def one_reply_lost(self) -> Iterator[None]:
        """Lose the reply to the next command."""
        seen = self.proxy.replies
        self.proxy.set("drop_replies")
        yield
        wait_for(lambda: self.proxy.replies > seen)
        self.proxy.set("ok")
