"""A Celery app, as a project has it: tasks that leave a line in the journal."""

import contextlib
import json
import logging
import os
import time
from collections.abc import Iterator

from celery import Celery
from celery.signals import worker_ready

from redis_kit.queues.celery import DelayedTask, SingletonTask
from redis_kit.queues.features.celery import broker
from tests.queues.support.journal import write as journal

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.queues.support.worker_settings")
app = Celery("tests.queues.support.fleet")
app.conf.update(
    broker_url=os.environ.get("CELERY_BROKER", "memory://"),
    broker_connection_retry_on_startup=True,
    broker_pool_limit=0,  # a test may change the broker
    result_backend=os.environ.get("CELERY_RESULTS") or None,
    broker_transport_options=json.loads(os.environ.get("CELERY_OPTIONS", "{}")),
    worker_hijack_root_logger=False,
    enable_utc=True,
    timezone="UTC",
)
app.autodiscover_tasks()
broker.TIMEOUT = float(os.environ.get("BROKER_TIMEOUT", broker.TIMEOUT))


def connect(url: str) -> None:
    """Connect the app of this process to a broker."""
    app.conf.broker_url = app.conf.broker_write_url = app.conf.broker_read_url = url
    app._pool = app.amqp._producer_pool = None


@worker_ready.connect
def say_ready(**_: object) -> None:
    """Say in the log that a worker of Celery works, whatever the settings log."""
    print("The fleet is ready.", flush=True)


@contextlib.contextmanager
def in_thread() -> Iterator[None]:
    """Run a worker in a thread of this process."""
    from celery.contrib.testing.worker import start_worker

    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    with start_worker(app, pool="solo", perform_ping_check=False):
        root.setLevel(level)  # it changes those of the whole process
        root.handlers[:] = handlers
        yield


@app.task(base=DelayedTask, bind=True)
def delayed(self, name: str) -> str:
    journal(name, f"id:{self.request.id}")
    return name


@app.task
def plain(name: str) -> None:
    journal(name, "ran")


@app.task(base=DelayedTask, bind=True, max_retries=2)
def retried(self, name: str) -> None:
    journal(name, f"try{self.request.retries}")
    if self.request.retries < 1:
        raise self.retry(countdown=1.5)


@app.task(base=SingletonTask, bind=True, acks_late=True)
def alone(self, name: str, seconds: float) -> None:
    journal(name, "begin")
    time.sleep(seconds)
    journal(name, "end")
