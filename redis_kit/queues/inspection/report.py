"""How a queue is doing, as Redis reports it of each shard."""

from collections.abc import Iterator, Sequence
from operator import mul
from typing import Any, NamedTuple

from redis_kit.queues.jobs.job import PauseInfo, QueueCounts, pause
from redis_kit.queues.store import unknown_calls
from redis_kit.queues.store.shards import summed
from redis_kit.queues.store.unknown_calls import UnknownCalls


class QueueStats(NamedTuple):
    """How a queue is doing.

    - ``wait``: seconds for which the next ready job, the first scheduled job, or a job that waits for a limit has been
      due, whichever is longest; None without a job.
    - ``done`` and ``failed``: jobs and attempts in each minute up to ``minute``, the present one, counted since 1970.
    - ``begun``: attempts that began in each minute; ``lateness`` and ``latest``: seconds from the time for which these
      were due to their claims, on average and at most.
    - ``paused``: None if the queue gives out jobs.
    - ``workers``: living workers; ``quiet``: those among the first 100 that claim no jobs, as they are quiet or
      stopping.
    - ``unknown``: the calls that workers returned as they can't run them; first those that no living worker can run.
    - ``refused``: why the server refuses writes to it, such as "OOM ..."; "" if it takes them.
    - ``shards``: over how many slots the queue is spread. The workers are then those that work on all of them.
    """

    counts: QueueCounts
    wait: float | None
    minute: int
    done: list[int]
    failed: list[int]
    begun: list[int]
    lateness: list[float]
    latest: list[float]
    paused: PauseInfo | None = None
    workers: int = 0
    quiet: int = 0
    unknown: tuple[UnknownCalls, ...] = ()
    shards: int = 1
    refused: str = ""

    @property
    def claiming(self) -> int:
        """Return how many living workers claim jobs of the queue."""
        return self.workers - self.quiet

    @property
    def deserted(self) -> bool:
        """Return whether jobs are due and no living worker claims jobs of the queue."""
        return self.wait is not None and self.claiming <= 0


def read(replies: Sequence[list[Any]]) -> QueueStats:
    """Return the replies of QUEUE_STATS for all shards of a queue as one report."""
    reports = [_read(reply) for reply in replies]
    return reports[0] if len(reports) == 1 else _merged(reports)


def _read(reply: list[Any]) -> QueueStats:
    wait = None if reply[4] < 0 else reply[4] / 1000
    done, failed, begun, late, latest = (reply[at::5] for at in range(12, 17))
    return QueueStats(
        QueueCounts(*reply[:4]),
        wait,
        reply[5],
        done,
        failed,
        begun,
        [total / 1000 / max(1, count) for total, count in zip(late, begun, strict=True)],
        [most / 1000 for most in latest],
        pause(reply[6], reply[7]),
        reply[8],
        reply[9],
        unknown_calls.read(reply[10]),
        refused=refusal(reply),
    )


def refusal(reply: list[Any]) -> str:
    """Return why the server refuses writes, as a reply of QUEUE_STATS has it."""
    return str(reply[11].decode("utf-8", "replace").lstrip("-").partition(" script: ")[0])


def _merged(reports: Sequence[QueueStats]) -> QueueStats:
    waits = [report.wait for report in reports if report.wait is not None]
    begun = [sum(same) for same in _by_minute(reports, "begun")]
    late = [map(mul, report.begun, report.lateness) for report in reports]
    return QueueStats(
        summed([report.counts for report in reports]),
        max(waits, default=None),
        reports[0].minute,
        [sum(same) for same in _by_minute(reports, "done")],
        [sum(same) for same in _by_minute(reports, "failed")],
        begun,
        [sum(same) / max(1, count) for same, count in zip(zip(*late, strict=True), begun, strict=True)],
        [max(same) for same in _by_minute(reports, "latest")],
        next((report.paused for report in reports if report.paused), None),
        *min((report.workers, report.quiet) for report in reports),
        unknown_calls.merged(call for report in reports for call in report.unknown),
        len(reports),
        next((report.refused for report in reports if report.refused), ""),
    )


def _by_minute(reports: Sequence[QueueStats], name: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(getattr(report, name) for report in reports), strict=True)
