"""taskiq over a ``list``, which is popped, or over a ``stream``, which is acknowledged."""

import os
import sys
from typing import Any

from taskiq_redis import ListQueueBroker, RedisStreamBroker

from benchmarks.support.job_log import note
from benchmarks.support.peers.event_loop import wait_for

PACKAGES = ("taskiq", "taskiq-redis", "redis")
KINDS = {"list": ListQueueBroker, "stream": RedisStreamBroker}
broker = KINDS[os.environ["BENCH_VARIANT"]](url=os.environ["BENCH_URL"])
_begun: list[bool] = []


@broker.task(task_name="nothing")
async def nothing(about: dict[str, Any]) -> None:
    """Do nothing."""
    note(about["number"])


def put(about: dict[str, Any]) -> None:
    """Send a task."""
    if not _begun:
        wait_for(broker.startup())
        _begun.append(True)
    wait_for(nothing.kiq(about))


def commands(processes: int) -> list[list[str]]:
    """Return one command for all processes."""
    command = [sys.executable, "-m", "taskiq", "worker", "benchmarks.support.peers.with_taskiq:broker"]
    return [[*command, "--workers", str(processes), "--log-level", "WARNING"]]
