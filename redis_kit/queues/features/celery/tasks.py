"""The task of Celery that runs a job of the kit. Light to import: the project's Celery app has it from the start."""

import mmap
from typing import Any

from celery import shared_task
from celery.signals import worker_init, worker_shutting_down

RUN = "redis_kit.run"
# Made before the worker forks: its processes share it, as Celery tells only the first one that it is to stop.
_flag = mmap.mmap(-1, 1)


@shared_task(name=RUN, ignore_result=True, acks_late=True, reject_on_worker_lost=True)  # type: ignore[untyped-decorator]
def run(queue: str, id: str, version: str, token: str) -> None:
    """Run the job of this id, unless it runs elsewhere, has ended, or was tried or changed since it was handed over."""
    from redis_kit.queues.features.celery import fleet

    fleet.current(stops).run(queue, id, version, token)


def stops() -> bool:
    """Return whether the worker that this process belongs to is asked to stop."""
    return _flag[0] == 1


@worker_init.connect  # type: ignore[untyped-decorator]
def _begin(**_: Any) -> None:
    _flag[0] = 0


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _end(**_: Any) -> None:
    _flag[0] = 1
