"""Huey, with the number of threads in the variant. It pops a task, so the task is lost if its worker dies."""

import os
import sys
from typing import Any

from huey import RedisHuey

from benchmarks.support.job_log import note

PACKAGES = ("huey", "redis")
huey = RedisHuey("bench", url=os.environ["BENCH_URL"], results=False)


@huey.task()
def nothing(about: dict[str, Any]) -> None:
    """Do nothing."""
    note(about["number"])


def put(about: dict[str, Any]) -> None:
    """Enqueue a task."""
    nothing(about)


def commands(processes: int) -> list[list[str]]:
    """Return a command per process."""
    run = "import sys; from huey.bin.huey_consumer import consumer_main; sys.exit(consumer_main())"
    command = [sys.executable, "-c", run, "benchmarks.support.peers.with_huey.huey", "--quiet"]
    return [[*command, "-w", os.environ["BENCH_VARIANT"]] for _ in range(processes)]
