"""The workers, from outside: supervisors that are started again when they end, and their children, by their pids."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.chaos.engine import faults
from tests.fixtures.fork_server import start_python

ROOT = Path(__file__).parents[4]
LOOK = 0.03  # seconds
STOP = 30.0
COMMAND = ("-m", "django", "rk_worker", "--settings", "tests.chaos.settings", "--queue-name", "default")


class Supervisor:
    """One supervisor, and all children that it was seen with."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        with log.open("ab") as file:
            self.process = start_python(command, cwd=ROOT, env=dict(environment), text=False, stdout=file, stderr=file)
        self.pid, self.known = self.process.pid, {self.process.pid}

    def children(self) -> set[int]:
        """Return the pids of those that live now."""
        found = set()
        with suppress(OSError):  # it may end at any moment
            for path in Path(f"/proc/{self.pid}/task").glob("*/children"):
                found |= set(map(int, path.read_text().split()))
        self.known |= found
        return found


class Fleet:
    """So many supervisors. One that ends is replaced by another one within moments, until stop()."""

    def __init__(
        self,
        folder: Path,
        *,
        size: int,
        options: Sequence[object],
        environment: Mapping[str, str],
        command: Sequence[str] = COMMAND,
        supervised: bool = True,
    ) -> None:
        self.supervised = supervised
        self.folder, self.environment = folder, {**os.environ, **environment}
        self.command = [*command, *map(str, options)]
        self.lock = threading.RLock()
        self.supervisors = [self._new(number) for number in range(size)]
        self.gone: list[Supervisor] = []
        self._ending = threading.Event()
        self._watch = threading.Thread(target=self._keep, name="fleet", daemon=True)
        self._watch.start()

    def _new(self, number: int) -> Supervisor:
        return Supervisor(self.command, self.environment, self.folder / f"worker{number}.log")

    def _keep(self) -> None:
        while not self._ending.wait(LOOK):
            with self.lock:
                for place, supervisor in enumerate(self.supervisors):
                    if supervisor.process.poll() is None:
                        supervisor.children()
                    else:
                        self.gone.append(supervisor)
                        self.supervisors[place] = self._new(place)

    def find(self, pid: int) -> Supervisor | None:
        """Return the supervisor of this pid, which may have ended; None where it is no supervisor's."""
        with self.lock:
            return next((supervisor for supervisor in self.supervisors + self.gone if supervisor.pid == pid), None)

    def working(self) -> set[int]:
        """Return the pids of those that work: the children, or a worker that has none by its nature."""
        with self.lock:
            alive = [supervisor for supervisor in self.supervisors if supervisor.process.poll() is None]
            return {
                pid for supervisor in alive for pid in (supervisor.children() if self.supervised else {supervisor.pid})
            }

    def stop(self) -> list[int]:
        """Stop all with TERM and return how they ended."""
        self._ending.set()
        self._watch.join()
        for supervisor in self.supervisors:
            supervisor.process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            return [supervisor.process.wait(STOP) for supervisor in self.supervisors]
        return [supervisor.process.poll() or 0 for supervisor in self.supervisors] + [-1]

    def orphans(self, patience: float) -> set[int]:
        """Return those of all children that live when all supervisors have ended; they get some time to die."""
        deadline = time.monotonic() + patience
        while (found := self._alive()) and time.monotonic() < deadline:
            time.sleep(LOOK)
        return found

    def _alive(self) -> set[int]:
        ended = [supervisor for supervisor in self.supervisors + self.gone if supervisor.process.poll() is not None]
        return {pid for supervisor in ended for pid in supervisor.known - {supervisor.pid} if self._is_ours(pid)}

    def _is_ours(self, pid: int) -> bool:
        with suppress(OSError):
            return Path(f"/proc/{pid}/fd/2").readlink().is_relative_to(self.folder)
        return False

    def logs(self) -> str:
        """Return what the workers said."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("worker*.log")))

    def close(self) -> None:
        """Kill whatever is left of what was started here."""
        self._ending.set()
        self._watch.join()
        for supervisor in self.supervisors + self.gone:
            if supervisor.process.poll() is None:
                children = supervisor.children()
                supervisor.process.kill()
                supervisor.process.wait()
                supervisor.known |= children
        faults.kill(*self._alive())
