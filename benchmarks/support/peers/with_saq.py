"""SAQ, with the number of concurrent jobs in the variant (its default is 10)."""

import os
import sys
from typing import Any

from saq import Queue

from benchmarks.support.job_log import note
from benchmarks.support.peers.event_loop import wait_for

PACKAGES = ("saq", "redis")
queue = Queue.from_url(os.environ["BENCH_URL"])


async def nothing(context: dict[str, Any], *, about: dict[str, Any]) -> None:
    """Do nothing."""
    note(about["number"])


settings = {"queue": queue, "functions": [nothing], "concurrency": int(os.environ["BENCH_VARIANT"])}


def put(about: dict[str, Any]) -> None:
    """Enqueue a job whose result is not kept."""
    wait_for(queue.enqueue("nothing", about=about, ttl=-1))


def commands(processes: int) -> list[list[str]]:
    """Return a command per process."""
    return [
        [sys.executable, "-m", "saq", "benchmarks.support.peers.with_saq.settings", "--quiet"] for _ in range(processes)
    ]
