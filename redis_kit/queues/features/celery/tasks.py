"""The task of Celery that runs a job of the kit. Light to import: the project's Celery app has it from the start."""

from celery import shared_task

from redis_kit.queues.features.celery import shutdown as shutdown  # before the worker forks: its processes share a flag

RUN = "redis_kit.run"


@shared_task(name=RUN, ignore_result=True, acks_late=True, reject_on_worker_lost=True)  # type: ignore[untyped-decorator]
def run(queue: str, id: str, version: str, token: str) -> None:
    """Run the job of this id, unless it runs elsewhere, has ended, or was tried or changed since it was handed over."""
    from redis_kit.queues.features.celery import fleet

    fleet.current().run(queue, id, version, token)
