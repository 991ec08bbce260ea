"""The tasks that workers run: each notes when it began, and does nothing, or sleeps."""

import time
from typing import Any

from benchmarks.marks import note
from redis_kit.queues import task


@task(store_result=False)
def forgotten(about: dict[str, Any]) -> None:
    """Do nothing, and leave no result."""
    note(about["number"])


@task
def kept(about: dict[str, Any]) -> None:
    """Do nothing; that it was done can be read afterwards."""
    note(about["number"])


@task(store_result=False)
def slept(number: int, seconds: float) -> None:
    """Sleep."""
    note(number)
    time.sleep(seconds)
