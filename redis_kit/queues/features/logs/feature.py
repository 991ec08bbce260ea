"""Logs of jobs: lines that tasks log, for the pages of their jobs."""

from collections.abc import Iterator, Sequence
from typing import Any

from redis_kit.core.steps import Call
from redis_kit.queues.engine.feature import Feature
from redis_kit.queues.keys import of_one

MOST_LINES = 100  # on the page of a job


class Logs(Feature):
    """The logging handler takes lines, and a part of the process sends them."""

    name = "logs"
    process_parts = dict.fromkeys(("worker", "celery"), "redis_kit.queues.features.logs.buffer.JobLogs")

    def job_step(self, base: str, id: str) -> Any:
        """Return the step that reads the latest lines, the oldest first."""
        return Call("LRANGE", of_one(base, "log", id), -MOST_LINES, -1)

    def job_sections(self, reply: Sequence[bytes]) -> Iterator[Any]:
        """Yield the lines, if there are any."""
        from redis_kit.queues.features.logs import section

        return section.lines(reply)
