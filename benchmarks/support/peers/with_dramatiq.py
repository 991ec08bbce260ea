"""Dramatiq with its eight threads in a process."""

import os
import sys
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.support.job_log import note

PACKAGES = ("dramatiq", "redis")
dramatiq.set_broker(RedisBroker(url=os.environ["BENCH_URL"]))


@dramatiq.actor
def nothing(about: dict[str, Any]) -> None:
    """Do nothing."""
    note(about["number"])


def put(about: dict[str, Any]) -> None:
    """Send a message."""
    nothing.send(about)


def commands(processes: int) -> list[list[str]]:
    """Return one command for all processes."""
    command = [sys.executable, "-m", "dramatiq", "benchmarks.support.peers.with_dramatiq"]
    return [[*command, "--processes", str(processes), "--threads", "8"]]
