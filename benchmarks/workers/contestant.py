"""A queue with workers that a benchmark measures: the kit in one of its forms, or a peer."""

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.marks import FOLDER, Marks
from benchmarks.workers.process import ROOT, environment, kit, running, tail
from benchmarks.workers.server import Server, State

DATABASE = "db.sqlite3"  # of peers that keep their jobs in one
READY = 30.0  # seconds within which a worker has done its first job


class Contestant(NamedTuple):
    """What is measured: its title, the module that knows it, in which form, and the interpreter that has it."""

    title: str
    peer: str
    variant: str = ""
    python: str = kit()


class Filled(NamedTuple):
    """A queue with so many jobs, to be put back before each drain."""

    count: int
    state: State
    database: bytes
    size: float  # bytes of the server's memory per job
    rate: float  # jobs put a second


class Pit:
    """Where a contestant works: the server, a folder of its own, and its processes."""

    def __init__(self, server: Server, contestant: Contestant, folder: Path) -> None:
        self.server, self.contestant, self.folder = server, contestant, folder
        self.marks = Marks(folder / "marks")
        self.log = folder / "log"

    def environment(self) -> dict[str, str]:
        """Return what its processes find in their environment."""
        more = {"BENCH_URL": self.server.url, "BENCH_VARIANT": self.contestant.variant}
        more |= {"BENCH_FOLDER": str(self.folder), FOLDER: str(self.marks.folder)}
        return environment(self.contestant.python, **more)

    @contextlib.contextmanager
    def driver(self) -> Iterator["Driver"]:
        """Give the process that puts jobs."""
        command = [self.contestant.python, "-m", "benchmarks.peers.drive", self.contestant.peer]
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
        """Put so many jobs into an empty queue."""
        self.empty()
        with self.driver() as driver:
            before = self.server.used()
            rate = driver.ask("fill", 0, count)
            size = (self.server.used() - before) / count
        database = self.folder / DATABASE
        return Filled(count, self.server.state(), database.read_bytes() if database.exists() else b"", size, rate)

    def restore(self, filled: Filled) -> None:
        """Put it back as it was filled."""
        self.empty()
        self.server.restore(filled.state)
        if filled.database:
            (self.folder / DATABASE).write_bytes(filled.database)

    def empty(self) -> None:
        """Have no jobs, and no notes of any."""
        self.server.flush()
        shutil.rmtree(self.marks.folder, ignore_errors=True)
        self.marks.folder.mkdir(parents=True)
        self.marks = Marks(self.marks.folder)
        for path in self.folder.glob(f"{DATABASE}*"):
            path.unlink()

    @contextlib.contextmanager
    def workers(self, processes: int = 1) -> Iterator[list[int]]:
        """Run its workers for the length of the block; gives their process ids."""
        with self.driver() as driver:
            commands = driver.ask("commands", processes)
        with running(commands, env=self.environment(), log=self.log) as pids:
            yield pids

    def wait(self, count: int, *, seconds: float) -> bool:
        """Wait until so many jobs have begun."""
        deadline = time.monotonic() + seconds
        while (found := self.marks.collect()) < count and time.monotonic() < deadline:
            time.sleep(0.02)
        return found >= count

    def warm(self, driver: "Driver", jobs: int = 5) -> None:
        """Return when the workers have done their first jobs; these are forgotten."""
        driver.ask("fill", -jobs, jobs)
        if not self.wait(jobs, seconds=READY):
            raise Failed(f"{self.contestant.title}: no job was done within {READY:g} s.\n{tail(self.log)}")
        time.sleep(0.5)
        self.marks.notes.clear()


def _finish(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
        assert process.stdin
        process.stdin.close()  # the end of its input is its end; a database is closed then
        process.wait(5)
    process.kill()


class Failed(Exception):
    """A contestant did not do its part."""


class Driver:
    """Asks the process that puts jobs."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process, self._log = process, log

    def ask(self, verb: str, *arguments: object) -> Any:
        """Return its answer."""
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps([verb, *arguments]).encode() + b"\n")
            self._process.stdin.flush()
        if not (line := self._process.stdout.readline()):
            raise Failed(tail(self._log))
        return json.loads(line)
