"""A queue with workers, as a benchmark measures it: the kit in one of its forms, or a peer."""

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.support.job_log import FOLDER, JobLog
from benchmarks.support.workers.processes import ROOT, environment, kit, running, tail
from benchmarks.support.workers.server import Server, State

DATABASE = "db.sqlite3"  # of peers that keep their jobs in one
READY = 30.0  # seconds within which a worker must run its first job


class Setup(NamedTuple):
    """A package to measure: its title, its module in ``peers``, its variant, and its interpreter."""

    title: str
    peer: str
    variant: str = ""
    python: str = kit()


class Filled(NamedTuple):
    """A filled queue, which is restored before each drain."""

    count: int
    state: State
    database: bytes
    size: float  # bytes of the server's memory per job
    rate: float  # jobs put a second


class TestBed:
    """The server, the folder and the processes of a setup."""

    def __init__(self, server: Server, setup: Setup, folder: Path) -> None:
        self.server, self.setup, self.folder = server, setup, folder
        self.job_log = JobLog(folder / "job_log")
        self.log = folder / "log"

    def environment(self) -> dict[str, str]:
        """Return the environment of its processes."""
        more = {"BENCH_URL": self.server.url, "BENCH_VARIANT": self.setup.variant}
        more |= {"BENCH_FOLDER": str(self.folder), FOLDER: str(self.job_log.folder)}
        return environment(self.setup.python, **more)

    @contextlib.contextmanager
    def driver(self) -> Iterator["Driver"]:
        """Run the process that puts jobs."""
        command = [self.setup.python, "-m", "benchmarks.support.peers.driver", self.setup.peer]
        with (
            self.log.open("ab") as log,
            subprocess.Popen(
                command, env=self.environment(), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            ) as process,
        ):
            try:
                yield Driver(process, self.log)
            finally:
                _finish(process)

    def fill(self, count: int) -> Filled:
        """Put this number of jobs into an empty queue."""
        self.empty()
        with self.driver() as driver:
            before = self.server.used()
            rate = driver.ask("fill", 0, count)
            size = (self.server.used() - before) / count
        database = self.folder / DATABASE
        return Filled(count, self.server.state(), database.read_bytes() if database.exists() else b"", size, rate)

    def restore(self, filled: Filled) -> None:
        """Restore the filled queue."""
        self.empty()
        self.server.restore(filled.state)
        if filled.database:
            (self.folder / DATABASE).write_bytes(filled.database)

    def empty(self) -> None:
        """Remove all jobs and all notes."""
        self.server.flush()
        shutil.rmtree(self.job_log.folder, ignore_errors=True)
        self.job_log.folder.mkdir(parents=True)
        self.job_log = JobLog(self.job_log.folder)
        for path in self.folder.glob(f"{DATABASE}*"):
            path.unlink()

    @contextlib.contextmanager
    def workers(self, processes: int = 1) -> Iterator[list[int]]:
        """Run its workers for the length of the block; return their process ids."""
        with self.driver() as driver:
            commands = driver.ask("commands", processes)
        with running(commands, env=self.environment(), log=self.log) as pids:
            yield pids

    def wait(self, count: int, *, seconds: float) -> bool:
        """Wait until this number of jobs has started; return whether it did in time."""
        deadline = time.monotonic() + seconds
        while (count_now := self.job_log.collect()) < count and time.monotonic() < deadline:
            time.sleep(0.02)
        return count_now >= count

    def warm(self, driver: "Driver", jobs: int = 5) -> None:
        """Wait until the workers have run their first jobs, and forget these."""
        driver.ask("fill", -jobs, jobs)
        if not self.wait(jobs, seconds=READY):
            raise Failed(f"{self.setup.title}: no job was done within {READY:g} s.\n{tail(self.log)}")
        time.sleep(0.5)
        self.job_log.notes.clear()


def _finish(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
        assert process.stdin
        process.stdin.close()  # it ends with its input, and closes a database
        process.wait(5)
    process.kill()


class Failed(Exception):
    """A setup does not work."""


class Driver:
    """The process that puts jobs."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process, self._log = process, log

    def ask(self, verb: str, *arguments: object) -> Any:
        """Send a command, and return its answer."""
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps([verb, *arguments]).encode() + b"\n")
            self._process.stdin.flush()
        if not (line := self._process.stdout.readline()):
            raise Failed(tail(self._log))
        return json.loads(line)
