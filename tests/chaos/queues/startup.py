"""Signals while a worker starts, at random moments and at each line of its code: every process ends, in time.

    python -m tests.chaos queues.startup 400
    python -m tests.chaos queues.startup --lines 1

The second one visits every line that the worker's own code runs from its command to the first turns of its loop.
A worker that hangs is told to write the stacks of all its processes.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis_kit.queues import Queue
from redis_kit.queues.inspection import list_workers
from tests.chaos.engine import faults, program
from tests.chaos.engine.program import Outcome, option
from tests.chaos.engine.stage import Stage, stage, wait_until
from tests.chaos.queues.support import line_signals
from tests.chaos.queues.support.workers import ROOT
from tests.fixtures.fork_server import start_python

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
# SIGINT in Python's own start, before any code of the worker.
INTERRUPTED = ("Fatal Python error: init_import_site", "Could not import runpy module")
MIX = (*(("", end) for end in ENDS), ("TSTP", "TERM"), ("TTIN", "TERM"), ("CONT", "TERM"), ("TERM", "INT"))


@dataclass(frozen=True)
class Round:
    """One start. ``at`` is the seconds after which it gets its signals, or the number of a line."""

    signals: tuple[str, ...]
    at: float | int
    processes: int = 1
    who: str = ""


@dataclass(frozen=True)
class Plan(program.Plan):
    """What is to be run."""

    rounds: int = option(0, "starts with signals at random moments")
    lines: int = option(0, "visit every so many lines")
    at: tuple[int, ...] = ()  # visit these
    at_once: int = option(2, "starts at the same time")
    signals: str = option("", "such as INT or TSTP,TERM; without it all of a mix")
    environment: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = COMMAND
    files: str = option(line_signals.ALL, "whose lines count, as paths that begin like this")
    patience: float = LIMIT

    def mix(self) -> tuple[tuple[str, ...], ...]:
        """Return the signals of the starts."""
        return (tuple(self.signals.split(",")),) if self.signals else MIX


def start(plan: Plan, place: Stage, one: Round, log: Path) -> Any:
    """Start a worker. If its signals come at a line of its own code, the start of Python is left out."""
    numbers = {line_signals.LINE: str(one.at), line_signals.WHO: one.who} if isinstance(one.at, int) else {}
    own = {
        **{"JOURNAL": str(place.folder / "history"), "PYTHONFAULTHANDLER": "1", "CHAOS_LOG": "INFO"},
        **{**numbers, line_signals.FILES: plan.files},
        line_signals.SIGNALS: " ".join(f"SIG{name}" for name in one.signals if name),
        **plan.environment,
    }
    its = {**os.environ, **place.environment(**own)}
    command = [*plan.command, "--threads", "2", "--processes", str(one.processes), "--grace", str(GRACE)]
    with log.open("wb") as file:
        if isinstance(one.at, int):
            return start_python(command, env=its, stdout=file, stderr=file)
        streams = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file}
        return subprocess.Popen([sys.executable, *command], cwd=ROOT, env=its, preexec_fn=as_in_front, **streams)


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
    found: dict[str, list[str]] = {"hanging": [], "ended wrongly": [], "left": []}
    with stage(QUEUES=LEASES) as place:
        rounds = list(_rounds(plan, place))
        random.Random(plan.seed).shuffle(rounds)
        with ThreadPoolExecutor(plan.at_once) as pool:
            ends = list(pool.map(lambda item: _one(plan, place, found, *item), enumerate(rounds)))
        queue = Queue("default")
        if not wait_until(
            lambda: queue.heartbeat(worker="looks") >= 0 and [one.id for one in list_workers()] == ["looks"], 5
        ):
            found["left"].append(f"the registry holds {list_workers()}")
    told, slowest = dict(sorted(Counter(how for how, _ in ends).items())), max(seconds for _, seconds in ends)
    return Outcome(f"{len(ends)} starts, the slowest end {slowest:.2f} s after its signal, {told}", found)


def _rounds(plan: Plan, place: Stage) -> Iterator[Round]:
    chance, mix = random.Random(plan.seed), plan.mix()
    if plan.rounds:
        ready = max(_ready(plan, place) for _ in range(3))
        for number in range(plan.rounds):
            yield Round(mix[number % len(mix)], chance.uniform(0, ready * 1.2), processes=chance.choice((1, 1, 2)))
    yield from (Round(chance.choice(mix), at) for at in plan.at)
    if plan.lines:
        for who in ("", "child"):
            for at in range(1 + chance.randrange(plan.lines), _length(plan, place, who), plan.lines):
                yield Round(chance.choice(mix), at, who=who)


def _ready(plan: Plan, place: Stage) -> float:
    """Return the seconds after which a worker works."""
    log, began = place.folder / "ready.log", time.monotonic()
    process = start(plan, place, Round(("TERM",), 0.0), log)
    wait_until(lambda: b"works on" in log.read_bytes(), 30)
    took = time.monotonic() - began
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    return took


def _length(plan: Plan, place: Stage, who: str) -> int:
    """Return how many lines a start has: by halves, the last one that a worker comes to within a moment of its work."""
    least, most = 1, 4096
    while most - least > 8:
        middle = (least + most) // 2
        log = place.folder / f"length{who}{middle}.log"
        process = start(plan, place, Round(("TERM",), middle, who=who), log)
        wait_until(lambda log=log: _sent(log) or b"works on" in log.read_bytes(), 30)  # type: ignore[misc]
        reached = wait_until(lambda log=log: _sent(log), 0.3)  # type: ignore[misc]
        _end(log, process)
        least, most = (middle, most) if reached else (least, middle)
    return most


def _one(plan: Plan, place: Stage, found: dict[str, list[str]], number: int, one: Round) -> tuple[str, float]:
    """Run a start and note what was wrong; return how it ended, and how long after its signals."""
    log = place.folder / f"{number}.log"
    process = start(plan, place, one, log)
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
    ended = wait_until(lambda: process.poll() is not None and not writing_to(log), plan.patience)
    seconds = time.monotonic() - began
    if not ended:
        found["hanging"].append(f"{one} hangs: {_stacks(log)}\n{log.read_text(errors='replace')[-6000:]}")
    _end(log, process)
    text = log.read_text(errors="replace")
    if ended and not is_allowed(process.returncode, one.signals, text):
        found["ended wrongly"].append(f"{one} ended with {process.returncode}\n{text[-3000:]}")
    return str(process.returncode), seconds


def is_allowed(code: int, signals: Sequence[str], log: str) -> bool:
    """Tell whether a worker may end with this code after these signals."""
    if code == 1 and "INT" in signals and any(text in log for text in INTERRUPTED):
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
    faults.kill(*writing_to(log))
    process.wait()
