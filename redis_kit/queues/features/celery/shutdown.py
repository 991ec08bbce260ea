"""Tells running jobs that their worker of Celery is asked to stop. Light to import."""

import mmap
from typing import Any

from celery.signals import worker_init, worker_shutting_down

_flag = mmap.mmap(-1, 1)  # the processes that a worker forks share it: Celery tells only the first one


def stops() -> bool:
    """Return whether the worker that this process belongs to is asked to stop."""
    return _flag[0] == 1


@worker_init.connect  # type: ignore[untyped-decorator]
def _begin(**_: Any) -> None:
    _flag[0] = 0


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _end(**_: Any) -> None:
    _flag[0] = 1
