"""Competing processes, from outside: started, told what to do, paused and killed. Each is known by its own pid."""

import contextlib
import json
import os
import select
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.chaos.locks.support import database, history
from tests.chaos.locks.support.history import Event
from tests.fixtures.fork_server import start_python

PATIENCE = 20.0  # seconds until an answer counts as missing


class Process:
    """One competing process. See worker/process.py for its options."""

    def __init__(self, worker: str, *options: str, folder: Path, url: str) -> None:
        self.worker = worker
        command = ["-m", "tests.chaos.locks.worker.process", "--worker", worker, "--url", url]
        self._popen = start_python(
            [*command, "--folder", folder, *options], text=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def tell(self, step: str, *, run_async: bool = False, **arguments: Any) -> None:
        """Let it take a step, and don't wait for the answer."""
        self._popen.stdin.write(json.dumps([step, arguments, run_async]).encode() + b"\n")
        self._popen.stdin.flush()

    def answer(self) -> Any:
        """Return the answer to the earliest step that has none yet."""
        ready, _, _ = select.select([self._popen.stdout], [], [], PATIENCE)
        assert ready, f"{self.worker} was silent for {PATIENCE} s"
        line = self._popen.stdout.readline()
        assert line, f"{self.worker} has ended with {self._popen.wait()}"
        return json.loads(line)

    def do(self, step: str, **arguments: Any) -> Any:
        """Let it take a step and return the answer."""
        self.tell(step, **arguments)
        return self.answer()

    def pause(self) -> None:
        """Let time pass for others, and none for it."""
        os.kill(self._popen.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """End a pause."""
        os.kill(self._popen.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it where it stands."""
        self._popen.kill()
        self._close()

    @property
    def asleep(self) -> bool:
        """Tell whether it waits for something to happen."""
        return self._popen.state == "S"

    @property
    def ended(self) -> bool:
        """Tell whether it has ended."""
        return self._popen.poll() is not None

    def wait(self) -> int:
        """Return how it ended by itself; a process that does not end is killed and counts as failed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(PATIENCE)
        self.kill()
        return self._popen.returncode

    def _close(self) -> None:
        self._popen.stdin.close()
        self._popen.stdout.close()
        self._popen.wait()


class Workspace:
    """A folder for histories and database, and the processes that compete in it; they end with the block."""

    def __init__(self, folder: Path, *, url: str, names: Sequence[str]) -> None:
        self.folder, self.url = folder, url
        self.processes: list[Process] = []
        self.database = folder / "rows.sqlite3"
        database.create(self.database, names)

    def start(self, worker: str, *options: str, url: str = "") -> Process:
        """Start a process."""
        self.processes.append(Process(worker, *options, folder=self.folder, url=url or self.url))
        return self.processes[-1]

    def history(self) -> list[Event]:
        """Return all that happened."""
        return history.read(self.folder) + database.kept(self.database)

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
