"""A service that the tasks need goes away, for half an hour or an hour of scaled time: with the defaults no job dies.

    python -m tests.chaos.queues.dependency_outage 5000 --minutes 60 --scale 60

A task connects to a real port, on which nobody listens during the outage. All waits are those of the defaults, divided
by the same number as the outage; the number of attempts is the default.
"""

import argparse
import contextlib
import json
import os
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.test.utils import override_settings

from redis_kit.core import connections
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.settings import QueueSettings
from tests.chaos.queues import tasks
from tests.chaos.queues.kill_loop import PATIENT
from tests.chaos.queues.support import history, program
from tests.chaos.queues.support.workers import COMMAND, ROOT, wait_until
from tests.fixtures.fork_server import start_python
from tests.fixtures.process import Server
from tests.queues.support.processes import end

START = 60.0  # seconds
FORMER = {"MAX_ATTEMPTS": 3, "RETRY_BACKOFF": 1.0, "RETRY_BACKOFF_MAX": 900.0}  # with which every job died


@dataclass(frozen=True)
class Plan:
    """What is to be run. Times are in seconds as they would be without the scale."""

    jobs: int
    outage: float = 1800.0
    scale: float = 600.0
    options: Mapping[str, float] = field(default_factory=dict)  # in place of the defaults

    def queues(self) -> dict[str, float]:
        """Return the options of queues."""
        defaults = QueueSettings()
        chosen = {name: getattr(defaults, name) for name in FORMER} | dict(self.options)
        return {name: value if name == "MAX_ATTEMPTS" else value / self.scale for name, value in chosen.items()}


@dataclass(frozen=True)
class Outcome:
    """What it came to: how many jobs are done and dead, and after how many attempts they succeeded."""

    done: int
    dead: int
    attempts: dict[int, int]
    violations: list[str]
    seconds: float

    def __str__(self) -> str:
        return f"done {self.done:,}, dead {self.dead:,}, by attempts {self.attempts}; {self.seconds:.1f} s"


class Service:
    """Listens on a port, but for the outage."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind(
            ("127.0.0.1", 0)
        )  # bound and not listening: connections are refused, and nobody gets the port
        self.port = self._socket.getsockname()[1]

    def come_back(self) -> None:
        """Answer from now on."""
        self._socket.listen(128)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Go away for good."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection:
                    connection.sendall(b"220 ready\r\n")


def run(plan: Plan) -> Outcome:
    """Let the service go away and come back; return what became of the jobs. All that it starts has ended then."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dependency")))
        server, service = Server(tcp=True, extra_args=("--maxmemory", "0")), Service()
        stack.callback(server.stop)
        stack.callback(service.close)
        kit = {"CONNECTIONS": {"default": server.connection}, "QUEUES": plan.queues(), **PATIENT}
        stack.enter_context(override_settings(REDIS_KIT=kit))
        stack.callback(connections.close)
        stack.enter_context(_worker(folder, kit))
        numbers, queue = range(1, plan.jobs + 1), Queue("default")
        for number in numbers:
            tasks.deliver.enqueue(number, service.port)
        wait_until(lambda: len(history.read(folder / "history")) >= plan.jobs, START)
        time.sleep(plan.outage / plan.scale)
        service.come_back()
        patience = START + 2 * plan.outage / plan.scale + QueueSettings().RETRY_BACKOFF_MAX / plan.scale
        wait_until(lambda: queue.counts()._replace(dead=0) == QueueCounts(0, 0, 0, 0), patience)
        dead = queue.counts().dead
        tried, done = _counted(history.read(folder / "history"))
        found = [f"job {number} is done {done[number]} times" for number in numbers if done[number] != 1]
        found += [f"{dead} jobs are dead"] if dead else []
    attempts = dict(sorted(Counter(tried[number] for number in numbers if done[number]).items()))
    return Outcome(len(done), dead, attempts, found, time.monotonic() - began)


def _counted(entries: list[history.Entry]) -> tuple[Counter[int], Counter[int]]:
    tried = Counter(entry.number for entry in entries if entry.phase == "begin")
    return tried, Counter(entry.number for entry in entries if entry.phase == "end")


@contextlib.contextmanager
def _worker(folder: Path, kit: Mapping[str, Any]) -> Iterator[None]:
    its = {**os.environ, "REDIS_KIT": json.dumps(kit), history.VARIABLE: str(folder / "history")}
    command = [*COMMAND, "--processes", "2", "--threads", "4"]
    with (folder / "log").open("wb") as log:
        process = start_python(command, cwd=ROOT, env=its, text=False, stdout=log, stderr=log)
    try:
        yield
    finally:
        end(process)


def main() -> int:
    """Run it as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", type=int)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--scale", type=float, default=60.0)
    given = parser.parse_args()
    outcome = run(Plan(given.jobs, outage=60 * given.minutes, scale=given.scale))
    print(outcome, *outcome.violations[:20], sep="\n")
    return int(bool(outcome.violations))


if __name__ == "__main__":
    program.run(main)
