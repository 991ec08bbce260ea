"""A service that the tasks need goes away, for half an hour or an hour of scaled time: with the defaults no job dies.

    python -m tests.chaos queues.dependency_outage 5000 --minutes 60 --scale 60

A task connects to a real port, on which nobody listens during the outage. All waits are those of the defaults, divided
by the same number as the outage; the number of attempts is the default.
"""

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.settings import QueueSettings
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome, option
from tests.chaos.engine.stage import stage, wait_until
from tests.chaos.queues import tasks
from tests.chaos.queues.support import history
from tests.chaos.queues.support.workers import Fleet

START = 60.0  # seconds
FORMER = {"MAX_ATTEMPTS": 3, "RETRY_BACKOFF": 1.0, "RETRY_BACKOFF_MAX": 900.0}  # with which every job died


@dataclass(frozen=True)
class Plan(program.Plan):
    """What is to be run. Times are in seconds as they would be without the scale."""

    jobs: int
    minutes: float = option(30.0, "of the outage")
    scale: float = option(60.0, "how many times faster the clock runs")
    options: Mapping[str, float] = field(default_factory=dict)  # in place of the defaults

    def queues(self) -> dict[str, float]:
        """Return the options of queues."""
        defaults = QueueSettings()
        chosen = {name: getattr(defaults, name) for name in FORMER} | dict(self.options)
        return {name: value if name == "MAX_ATTEMPTS" else value / self.scale for name, value in chosen.items()}


class Service:
    """Listens on a port, but for the outage."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind(
            ("127.0.0.1", 0)
        )  # bound and not listening: connections are refused, and nobody gets the port
        self.port = self._socket.getsockname()[1]

    def come_back(self) -> None:
        """Answer from now on."""
        self._socket.listen(128)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Go away for good."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection:
                    connection.sendall(b"220 ready\r\n")


def run(plan: Plan) -> Outcome:
    """Let the service go away and come back; return what became of the jobs. All that it starts has ended then."""
    with stage(QUEUES=plan.queues()) as place, contextlib.closing(Service()) as service:
        path, queue, outage = place.folder / "history", Queue("default"), 60 * plan.minutes / plan.scale
        environment = place.environment(**{history.VARIABLE: str(path)})
        fleet = Fleet(place.folder, size=1, options=["--processes", 2, "--threads", 4], environment=environment)
        place.at_the_end(fleet.close)
        numbers = range(1, plan.jobs + 1)
        for number in numbers:
            tasks.deliver.enqueue(number, service.port)
        wait_until(lambda: len(history.read(path)) >= plan.jobs, START)
        time.sleep(outage)
        service.come_back()
        patience = START + 2 * outage + QueueSettings().RETRY_BACKOFF_MAX / plan.scale
        wait_until(lambda: queue.counts()._replace(dead=0) == QueueCounts(0, 0, 0, 0), patience)
        dead, entries = queue.counts().dead, history.read(path)
    tried = Counter(entry.number for entry in entries if entry.phase == "begin")
    done = Counter(entry.number for entry in entries if entry.phase == "end")
    attempts = dict(sorted(Counter(tried[number] for number in numbers if done[number]).items()))
    found = {
        "lost": [f"job {number} is not done" for number in numbers if not done[number]],
        "doubled": [f"job {number} is done {count} times" for number, count in done.items() if count > 1],
        "dead": [f"{dead} jobs are dead"] if dead else [],
    }
    return Outcome(f"done {len(done):,}, dead {dead:,}, by attempts {attempts}", found, dead=dead, attempts=attempts)
