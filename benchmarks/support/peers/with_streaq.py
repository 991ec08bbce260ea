"""streaq, with the number of concurrent jobs in the variant (its default is 16)."""

import logging
import os
import sys
from typing import Any

from streaq import Worker

from benchmarks.support.job_log import note
from benchmarks.support.peers.event_loop import wait_for

PACKAGES = ("streaq", "coredis")
logging.disable(logging.INFO)  # two lines for each job

worker: Any = Worker(redis_url=os.environ["BENCH_URL"], concurrency=int(os.environ["BENCH_VARIANT"]))
_entered: list[bool] = []


@worker.task(ttl=0)
async def nothing(about: dict[str, Any]) -> None:
    """Do nothing."""
    note(about["number"])


async def _put(about: dict[str, Any]) -> None:
    if not _entered:
        await worker.__aenter__()
        _entered.append(True)
    await nothing.enqueue(about)


def put(about: dict[str, Any]) -> None:
    """Enqueue a task."""
    wait_for(_put(about))


def commands(processes: int) -> list[list[str]]:
    """Return a command per process."""
    return [
        [sys.executable, "-m", "streaq", "run", "benchmarks.support.peers.with_streaq:worker"] for _ in range(processes)
    ]
