"""The kit: ``forgotten`` or ``kept`` (with a result), and the threads of a process, as in ``kept-8``."""

import os
import sys
import time
from datetime import UTC, datetime
from typing import Any

import django

PACKAGES = ("Django", "redis")
SETTINGS = "benchmarks.support.app.settings"
NAME, THREADS = os.environ["BENCH_VARIANT"].split("-")

os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
django.setup()

from benchmarks.support.app import tasks  # noqa: E402 - tasks need settings

TASK = getattr(tasks, NAME)


def put(about: dict[str, Any]) -> None:
    """Enqueue a task."""
    TASK.enqueue(about)


def schedule(seconds: list[float]) -> list[float]:
    """Enqueue a task for each of these seconds from now; return the times at which they are due."""
    now = time.time()
    for number, later in enumerate(seconds):
        due = datetime.fromtimestamp(now + later, tz=UTC)
        TASK.using(run_after=due).enqueue({"number": number})
    return [now + later for later in seconds]


def sleepers(seconds: list[float]) -> None:
    """Enqueue tasks that sleep for these seconds."""
    for number, length in enumerate(seconds):
        tasks.slept.enqueue(number, length)


def commands(processes: int) -> list[list[str]]:
    """Return one command for all processes."""
    command = [sys.executable, "-m", "django", "rk_worker", "--settings", SETTINGS, "--queue-name", "default"]
    return [[*command, "--threads", THREADS, "--processes", str(processes)]]
