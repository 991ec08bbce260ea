"""A task that leaves a trace, with the schedules in ``SCHEDULES``: a list of arguments of periodic()."""

import json
import os
import time
from pathlib import Path

from redis_kit.queues import periodic, task
from tests.queues.support.tasks import journal


@task(store_result=False)
def beat(name: str, until: str = "") -> None:
    journal(name, "begin")
    deadline = time.monotonic() + 60
    while until and not Path(until).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    journal(name, "end")


for given in json.loads(os.environ.get("SCHEDULES", "[]")):
    periodic(**given)(beat)
