"""A task that leaves a trace, with the schedules in ``SCHEDULES``: a list of arguments of periodic()."""

import json
import os
import time
from pathlib import Path
from typing import Any

from redis_kit.core.activity import current
from redis_kit.queues import periodic, signals, task
from tests.queues.support.tasks import journal


@task(store_result=False)
def beat(name: str, until: str = "", seconds: float = 0.0) -> None:
    id = (current.get().work or "").rpartition(" ")[2]
    journal(name, "begin")
    journal(id, "began")
    time.sleep(seconds)
    deadline = time.monotonic() + 60
    while until and not Path(until).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    journal(id, "ended")
    journal(name, "end")


def _added(*, id: str, **_: Any) -> None:
    journal(id, "added")


for given in json.loads(os.environ.get("SCHEDULES", "[]")):
    periodic(**given)(beat)
for given in json.loads(os.environ.get("SCHEDULES_OF_CELERY", "[]")):
    from tests.queues.support import fleet

    periodic(**given)(fleet.plain)
signals.job_enqueued.connect(_added)
