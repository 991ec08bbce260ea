"""Processes that take part in a run. One that is killed is replaced at once, and all end with the run."""

import os
import signal
from collections.abc import Callable, Iterable, Mapping
from typing import Any


class Forked:
    """A function in a child of this process, with the methods of Popen that a crew uses."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if not self.pid:
            try:
                work()
            finally:
                os._exit(0)

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self._ended(os.WNOHANG)

    def wait(self) -> int | None:
        """Return the exit code after its end."""
        return self._ended(0)

    def kill(self) -> None:
        """Send SIGKILL."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _ended(self, how: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, how)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


class Crew:
    """Processes by their names, each with the function that starts it."""

    def __init__(self, starts: Mapping[str, Callable[[], Any]]) -> None:
        self.starts = starts
        self.processes = {name: start() for name, start in starts.items()}

    def replace(self, name: str) -> bool:
        """Kill a process and start another one in its place; False if it had come to its end."""
        if self.processes[name].poll() is not None:
            return False
        self.end(name)
        self.processes[name] = self.starts[name]()
        return True

    def are_at_work(self, names: Iterable[str] = ()) -> bool:
        """Tell whether one of these, or of all, runs. Raises AssertionError if one has failed."""
        codes = {name: self.processes[name].poll() for name in names or self.processes}
        assert set(codes.values()) <= {None, 0, -signal.SIGKILL}, codes
        return None in codes.values()

    def end(self, *names: str) -> None:
        """Kill these, or all."""
        for name in names or self.processes:
            self.processes[name].kill()
            self.processes[name].wait()
