"""A child process that ends with this process, even if this process is killed."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from redis_kit.core.embedded.server import Guarded
from redis_kit.core.text import contained


class Failed(Exception):
    """The demo can't start or continue; the message says why."""


class ChildProcess:
    """The site or the worker: a process under a guard, which kills it when this process has ended."""

    def __init__(self, name: str, command: Sequence[str], *, folder: Path) -> None:
        """Start it. ``folder`` is created for its log and removed with it."""
        self.name = name
        folder.mkdir(mode=0o700)
        self.guarded = Guarded(command, folder=folder)

    def check(self) -> None:
        """Raise Failed with the end of its log if it has ended."""
        if self.guarded.poll() is not None:
            # A margin parts the log from what the demo says itself: jobs that fail leave tracebacks in it.
            raise Failed(contained(f"The {self.name} has ended. The end of its log:\n{self.guarded.log_tail()}"))

    def terminate(self) -> None:
        """Ask it to end."""
        if self.guarded.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.guarded.server_pid, signal.SIGTERM)

    def end(self, *, deadline: float) -> None:
        """Wait until it has ended; kill it at ``deadline``, on the monotonic clock."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.guarded.wait(timeout=max(0.0, deadline - time.monotonic()))
        self.guarded.stop()
