"""RQ's SimpleWorker, which runs jobs in its own process."""

import os
import sys
from typing import Any

from redis import Redis
from rq import Queue

from benchmarks.support.job_log import note

PACKAGES = ("rq", "redis")
queue = Queue(connection=Redis.from_url(os.environ["BENCH_URL"]))


def nothing(about: dict[str, Any]) -> None:
    """Do nothing."""
    note(about["number"])


def put(about: dict[str, Any]) -> None:
    """Enqueue a call."""
    queue.enqueue("benchmarks.support.peers.with_rq.nothing", about, result_ttl=0)


def commands(processes: int) -> list[list[str]]:
    """Return a command per process."""
    run = "import sys; from rq.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", run, "worker", "--url", os.environ["BENCH_URL"]]
    return [[*command, "--worker-class", "rq.SimpleWorker", "--quiet"] for _ in range(processes)]
