"""Options of a worker."""

from typing import NamedTuple


class Options(NamedTuple):
    """The options of ``rk_worker``. Times are in seconds, ``max_rss`` in MiB; without ``weights`` the order is strict.

    ``threads``, ``max_tasks`` and ``max_rss`` are those of one process.
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
