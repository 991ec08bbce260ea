"""Signals while a worker starts, at random moments and at each line of its code: every process ends, in time.

    python -m tests.chaos.queues.startup --rounds 400
    python -m tests.chaos.queues.startup --lines 1

The second one visits every line that the worker's own code runs from its command to the first turns of its loop.
A worker that hangs is told to write the stacks of all its processes.
"""

import argparse
import contextlib
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.test.utils import override_settings

from redis_kit.core import connections
from redis_kit.queues import Queue
from redis_kit.queues.inspection import list_workers
from tests.chaos.queues.support import line_signals
from tests.chaos.queues.support.workers import ROOT, wait_until
from tests.fixtures.fork_server import start_python
from tests.fixtures.process import Server

COMMAND = (
    "-m",
    "django",
    "rk_worker",
    "--settings",
    "tests.chaos.queues.support.startup_settings",
    "--queue-name",
    "default",
)
LEASES = {"HEARTBEAT_INTERVAL": 0.1, "WORKER_TIMEOUT": 0.6}
GRACE = 0.3
LIMIT = 8.0  # seconds in which all has ended; grace + 1 s, and time for a busy machine
ENDS = ("TERM", "INT", "HUP", "QUIT")
INTERRUPTED = "Fatal Python error: init_import_site"  # SIGINT in Python's own start, before any code of the worker
MIX = (*(("", end) for end in ENDS), ("TSTP", "TERM"), ("TTIN", "TERM"), ("CONT", "TERM"), ("TERM", "INT"))


@dataclass(frozen=True)
class Round:
    """One start. ``at`` is the seconds after which it gets its signals, or the number of a line."""

    signals: tuple[str, ...]
    at: float | int
    processes: int = 1
    who: str = ""


@dataclass(frozen=True)
class Plan:
    """What is to be run."""

    rounds: int = 0
    every: int = 0  # visit every so many lines; 0: none
    at: tuple[int, ...] = ()  # visit these
    at_once: int = 2
    seed: int = field(default_factory=lambda: secrets.randbelow(1_000_000))
    signals: tuple[tuple[str, ...], ...] = MIX
    environment: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = COMMAND
    files: str = line_signals.ALL  # whose lines count
    patience: float = LIMIT


@dataclass
class Outcome:
    """What it came to: of each start how it ended, and what was wrong."""

    seed: int
    ended: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        count, told = sum(self.ended.values()), dict(sorted(self.ended.items()))
        return f"seed {self.seed}: {count} starts, the slowest end {self.slowest:.2f} s after its signal, {told}"


class Setup:
    """A server, and the settings of this process and of the workers."""

    def __init__(self, plan: Plan, stack: contextlib.ExitStack) -> None:
        self.plan, self.folder = plan, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="starts")))
        server = Server()
        stack.callback(server.stop)
        settings = {"PREFIX": f"s{secrets.token_hex(4)}", "CONNECTIONS": {"default": server.connection}}
        self.settings = {**settings, "QUEUES": LEASES}
        stack.enter_context(override_settings(REDIS_KIT=self.settings))
        stack.callback(connections.close)

    def start(self, one: Round, log: Path) -> Any:
        """Start a worker. If its signals come at a line of its own code, the start of Python is left out."""
        numbers = {line_signals.LINE: str(one.at), line_signals.WHO: one.who} if isinstance(one.at, int) else {}
        its = {
            **os.environ,
            **{"REDIS_KIT": json.dumps(self.settings), "JOURNAL": str(self.folder / "history")},
            **{"PYTHONFAULTHANDLER": "1", "CHAOS_LOG": "INFO"},
            **{**numbers, line_signals.FILES: self.plan.files},
            line_signals.SIGNALS: " ".join(f"SIG{name}" for name in one.signals if name),
            **self.plan.environment,
        }
        command = [*self.plan.command, "--threads", "2", "--processes", str(one.processes), "--grace", str(GRACE)]
        with log.open("wb") as file:
            if isinstance(one.at, int):
                return start_python(command, env=its, stdout=file, stderr=file)
            return subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=its,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                preexec_fn=as_in_front,
            )


def writing_to(log: Path) -> list[int]:
    """Return the processes of a start that live."""
    found = []
    for path in Path("/proc").glob("[0-9]*/fd/2"):
        with contextlib.suppress(OSError):
            if path.readlink() == log:
                found.append(int(path.parts[2]))
    return found


def as_in_front() -> None:
    """Take signals as a process does that a terminal has in front."""
    for name in ("INT", "QUIT", "HUP"):  # a background job of a shell ignores some
        signal.signal(signal.Signals[f"SIG{name}"], signal.SIG_DFL)


def run(plan: Plan) -> Outcome:
    """Start workers, send them signals, and check how they end. All that it starts has ended when it returns."""
    outcome = Outcome(plan.seed)
    with contextlib.ExitStack() as stack:
        setup = Setup(plan, stack)
        rounds = list(_rounds(plan, setup))
        random.Random(plan.seed).shuffle(rounds)
        with ThreadPoolExecutor(plan.at_once) as pool:
            for found in pool.map(lambda item: _one(setup, *item), enumerate(rounds)):
                how, seconds, wrong = found
                outcome.ended[how] += 1
                outcome.slowest = max(outcome.slowest, seconds)
                outcome.violations += wrong
        queue = Queue("default")
        if not wait_until(
            lambda: queue.heartbeat(worker="looks") >= 0 and [one.id for one in list_workers()] == ["looks"], 5
        ):
            outcome.violations.append(f"the registry holds {list_workers()}")
    return outcome


def _rounds(plan: Plan, setup: Setup) -> Iterator[Round]:
    chance = random.Random(plan.seed)
    if plan.rounds:
        ready = max(_ready(setup) for _ in range(3))
        for number in range(plan.rounds):
            signals = plan.signals[number % len(plan.signals)]
            yield Round(signals, chance.uniform(0, ready * 1.2), processes=chance.choice((1, 1, 2)))
    yield from (Round(chance.choice(plan.signals), at) for at in plan.at)
    if plan.every:
        for who in ("", "child"):
            for at in range(1 + chance.randrange(plan.every), _length(setup, who), plan.every):
                yield Round(chance.choice(plan.signals), at, who=who)


def _ready(setup: Setup) -> float:
    """Return the seconds after which a worker works."""
    log, began = setup.folder / "ready.log", time.monotonic()
    process = setup.start(Round(("TERM",), 0.0), log)
    wait_until(lambda: b"works on" in log.read_bytes(), 30)
    took = time.monotonic() - began
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    return took


def _length(setup: Setup, who: str) -> int:
    """Return how many lines a start has: by halves, the last one that a worker comes to within a moment of its work."""
    least, most = 1, 4096
    while most - least > 8:
        middle = (least + most) // 2
        log = setup.folder / f"length{who}{middle}.log"
        process = setup.start(Round(("TERM",), middle, who=who), log)
        wait_until(lambda log=log: _sent(log) or b"works on" in log.read_bytes(), 30)  # type: ignore[misc]
        reached = wait_until(lambda log=log: _sent(log), 0.3)  # type: ignore[misc]
        _end(log, process)
        least, most = (middle, most) if reached else (least, middle)
    return most


def _one(setup: Setup, number: int, one: Round) -> tuple[str, float, list[str]]:
    """Run a start; return how it ended, how long after its signals, and what was wrong."""
    log = setup.folder / f"{number}.log"
    process, wrong = setup.start(one, log), []
    if isinstance(one.at, int):
        wait_until(lambda: process.poll() is not None or b"works on" in log.read_bytes() or _sent(log), 30)
        if not wait_until(lambda: process.poll() is not None or _sent(log), 0.5):
            process.send_signal(signal.SIGTERM)  # it does not come to that line
    else:
        time.sleep(one.at)
        for name in filter(None, one.signals):
            process.send_signal(signal.Signals[f"SIG{name}"])
    if _is_stopped(process.pid) and b"Working on" not in log.read_bytes():
        process.send_signal(signal.SIGCONT)  # it was no worker yet: the system stopped it, as any process
    began = time.monotonic()
    ended = wait_until(lambda: process.poll() is not None and not writing_to(log), setup.plan.patience)
    seconds = time.monotonic() - began
    if not ended:
        wrong.append(f"{one} hangs: {_stacks(log)}\n{log.read_text(errors='replace')[-6000:]}")
    _end(log, process)
    text = log.read_text(errors="replace")
    if ended and not is_allowed(process.returncode, one.signals, text):
        wrong.append(f"{one} ended with {process.returncode}\n{text[-3000:]}")
    return str(process.returncode), seconds, wrong


def is_allowed(code: int, signals: Sequence[str], log: str) -> bool:
    """Tell whether a worker may end with this code after these signals."""
    if code == 1 and "INT" in signals and INTERRUPTED in log:
        return True
    return code in {0, -signal.SIGTERM, *(-signal.Signals[f"SIG{name}"] for name in signals if name in ENDS)}


def _sent(log: Path) -> bool:
    return b"Signals at line" in log.read_bytes()


def _is_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False


def _stacks(log: Path) -> str:
    """Let each process write its stacks, which ends it; return what the system says of them."""
    found = []
    for pid in writing_to(log):
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text()
            about = [line for line in status.splitlines() if line.startswith(("State", "PPid", "Sig", "Shd"))]
            found.append(f"{pid}: {' '.join(about)}")
            os.kill(pid, signal.SIGABRT)
            os.kill(pid, signal.SIGCONT)
    time.sleep(0.5)
    return "; ".join(found)


def _end(log: Path, process: Any) -> None:
    for pid in writing_to(log):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments say; 1 where something was wrong."""
    import django

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=0, help="starts with signals at random moments")
    parser.add_argument("--lines", type=int, default=0, help="visit every so many lines")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--files", default=line_signals.ALL, help="whose lines count, as paths that begin like this")
    parser.add_argument("--signals", nargs="*", help="such as INT or TSTP,TERM")
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    mix = tuple(tuple(text.split(",")) for text in chosen.signals) if chosen.signals else MIX
    outcome = run(Plan(chosen.rounds, chosen.lines, (), chosen.at_once, chosen.seed, mix, files=chosen.files))
    print(outcome)
    for violation in outcome.violations:
        print("-", violation)
    return int(bool(outcome.violations))


if __name__ == "__main__":
    raise SystemExit(main())
