"""Celery with a prefork pool of one process per worker process, late acknowledgement and no results."""

import os
import sys
from typing import Any

from celery import Celery

from benchmarks.support.job_log import note

PACKAGES = ("celery", "kombu", "redis")

app = Celery("benchmarks.support.peers.with_celery", broker=os.environ["BENCH_URL"])
app.conf.update(task_acks_late=True, task_ignore_result=True, broker_connection_retry_on_startup=True)


@app.task(name="nothing")
def nothing(about: dict[str, Any]) -> None:
    """Do nothing."""
    note(about["number"])


def put(about: dict[str, Any]) -> None:
    """Send a task."""
    nothing.delay(about)


def commands(processes: int) -> list[list[str]]:
    """Return one command for all processes."""
    command = [sys.executable, "-m", "celery", "-A", "benchmarks.support.peers.with_celery", "worker"]
    return [[*command, "--pool", "prefork", "-c", str(processes), "--loglevel", "WARNING"]]
