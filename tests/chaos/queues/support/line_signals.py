"""A process that sends itself signals when it comes to one line of the worker's code: see ``starts``."""

import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import redis_kit

LINE, SIGNALS, WHO, FILES = "STARTS_LINE", "STARTS_SIGNALS", "STARTS_WHO", "STARTS_FILES"
FOLDER = Path(redis_kit.__file__).parent / "queues"
ALL = f"{FOLDER}/worker/ {FOLDER}/commands/rk_worker.py"


def watch(nth: int, numbers: list[int], files: tuple[str, ...], *, in_child: bool) -> None:
    """Send the signals when the nth line of some files is about to run in this process, or in its children."""
    first, seen = os.getpid(), count(1)

    def line(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event == "line" and in_child == (os.getpid() != first) and next(seen) == nth:
            sys.settrace(None)
            print(f"Signals at line {nth}: {frame.f_code.co_filename}:{frame.f_lineno}", file=sys.stderr, flush=True)
            for number in numbers:
                os.kill(os.getpid(), number)
            if in_child:  # as a terminal and systemd send them, to all
                os.kill(first, numbers[-1])
        return line

    def called(frame: FrameType, _event: str, _: Any) -> Callable[..., Any] | None:
        return line if frame.f_code.co_filename.startswith(files) else None

    sys.settrace(called)


def watch_as_told() -> None:
    """Do what the environment says."""
    if os.environ.get(LINE):
        numbers = [int(signal.Signals[name]) for name in os.environ[SIGNALS].split()]
        files = tuple(os.environ.get(FILES, ALL).split())
        watch(int(os.environ[LINE]), numbers, files, in_child=os.environ.get(WHO) == "child")
