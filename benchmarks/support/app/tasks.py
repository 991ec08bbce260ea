"""The tasks of the benchmarks: each notes its start, and does nothing or sleeps."""

import time
from typing import Any

from benchmarks.support.job_log import note
from redis_kit.queues import task


@task(store_result=False)
def forgotten(about: dict[str, Any]) -> None:
    """Do nothing, and leave no result."""
    note(about["number"])


@task
def kept(about: dict[str, Any]) -> None:
    """Do nothing, and store a result."""
    note(about["number"])


@task(store_result=False)
def slept(number: int, seconds: float) -> None:
    """Sleep."""
    note(number)
    time.sleep(seconds)
