"""Tasks of the histories with a database. A module of its own, as it needs models."""

import time

from redis_kit.queues import resumable, task
from tests.app.models import Place
from tests.chaos.queues.support.history import note

ROW = 0.0005  # seconds


@task(timeout=None)
def walk(every: int) -> None:
    """Do something with each row."""
    for place in resumable(Place.objects.all(), every=every):
        time.sleep(ROW)
        note(place.pk, "end")


@task(outbox=True, store_result=False)
def deliver_row(number: int) -> None:
    """Note that the call came."""
    note(number, "end")
