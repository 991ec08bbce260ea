"""A worker that writes down which jobs it hands over, and which of them the broker of Celery took.

A line is a single write(), so that SIGKILL loses none: ``<pid> <thread> <ns> begin|taken <id>,<id>``.
"""

import os
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.management import execute_from_command_line

from redis_kit.queues.features.celery.sink import CelerySink

VARIABLE = "CHAOS_HAND_OVERS"
NOTED = 1_000_000_000  # ns until the queue knows what the broker took: the worker says so within 30 ms
hand_over_many = CelerySink.hand_over_many


@dataclass
class Batch:
    """Jobs that a process handed over at once, and those that the broker took: none if it did not answer."""

    pid: int
    ids: Sequence[str]
    ended: int = 0  # ns on the clock that all processes share; 0 if the process was killed before
    taken: set[str] = field(default_factory=set)

    def in_flight(self, kills: Mapping[int, int]) -> list[str]:
        """Return the jobs that may be sent again: the broker did not answer, or the process was killed at once."""
        killed_at = kills.get(self.pid, 0)
        if not self.ended or 0 <= killed_at - self.ended < NOTED:
            return list(self.ids)
        return [id for id in self.ids if id not in self.taken]


def read(path: Path) -> list[Batch]:
    """Return all batches that workers wrote down, in their order."""
    batches: list[Batch] = []
    by_thread: dict[tuple[str, str], Batch] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        pid, thread, at, step, ids = line.split(" ")
        if step == "begin":
            by_thread[pid, thread] = Batch(int(pid), ids.split(","))
            batches.append(by_thread[pid, thread])
        else:
            batch = by_thread[pid, thread]
            batch.ended, batch.taken = int(at), set(ids.split(","))
    return batches


def _recorded(sink: CelerySink, queue: Any, jobs: Sequence[tuple[Any, Any]]) -> list[Any]:
    ids = [job.id for job, _ in jobs]
    _write("begin", ids)
    answers = hand_over_many(sink, queue, jobs)
    _write("taken", (id for id, answer in zip(ids, answers, strict=True) if answer is None))
    return answers


def _write(step: str, ids: Iterable[str]) -> None:
    line = f"{os.getpid()} {threading.get_ident()} {time.monotonic_ns()} {step} {','.join(ids)}\n"
    file = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line.encode())
    os.close(file)


if __name__ == "__main__":
    CelerySink.hand_over_many = _recorded  # type: ignore[method-assign]
    execute_from_command_line(["manage.py", *sys.argv[1:]])
