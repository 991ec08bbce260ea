"""Options of a worker."""

from typing import NamedTuple

from redis_kit.queues.engine.spread import spread
from redis_kit.queues.settings import whole


class LoneJob(NamedTuple):
    """A job that is to run in a process of its own: its queue, or shard, and what claim_by_id() needs to claim it."""

    source: str
    id: str
    token: str
    version: str


class Options(NamedTuple):
    """The options of ``rk_worker``. Times are in seconds, ``max_rss`` in MiB; without ``weights`` the order is strict.

    ``threads``, ``max_tasks`` and ``max_rss`` are those of one process. ``older_shards`` are shards of the queues that
    get no more jobs. With ``lone_job`` the worker runs that one and ends.
    """

    queues: tuple[str, ...]
    weights: tuple[int, ...] | None = None
    processes: int = 1
    threads: int = 8
    grace: float = 25.0
    burst: bool = False
    max_tasks: int | None = None
    max_rss: int | None = None
    reload: bool = False
    health_port: int | None = None
    max_wait: float = 300.0
    metrics_port: int | None = None
    address: str = "127.0.0.1"
    older_shards: tuple[str, ...] = ()
    lone_job: LoneJob | None = None

    def alone(self, job: LoneJob) -> "Options":
        """Return the options of the process that runs one job."""
        options = self._replace(queues=(whole(job.source),), weights=None, threads=1, burst=True, lone_job=job)
        return options._replace(max_tasks=None, max_rss=None)

    @property
    def shards(self) -> list[list[str]]:
        """Return the shards of each queue. Most queues have one, of their own name."""
        if self.lone_job:
            return [[self.lone_job.source]]
        return [
            [*dict.fromkeys((*spread().names(queue), *(name for name in self.older_shards if whole(name) == queue)))]
            for queue in self.queues
        ]

    @property
    def sources(self) -> list[str]:
        """Return the shards of all queues."""
        return [name for names in self.shards for name in names]
