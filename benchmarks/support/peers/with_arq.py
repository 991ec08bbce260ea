"""arq, with the number of concurrent jobs in the variant (its default is 10)."""

import os
import sys
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings

from benchmarks.support.job_log import note
from benchmarks.support.peers.event_loop import wait_for

PACKAGES = ("arq", "redis")
ADDRESS = RedisSettings.from_dsn(os.environ["BENCH_URL"])
_pool: list[Any] = []


async def nothing(context: dict[str, Any], about: dict[str, Any]) -> None:
    """Do nothing."""
    note(about["number"])


class WorkerSettings:
    """The settings of its worker."""

    functions = (nothing,)
    redis_settings = ADDRESS
    max_jobs = int(os.environ["BENCH_VARIANT"])
    keep_result = 0


def put(about: dict[str, Any]) -> None:
    """Enqueue a job."""
    if not _pool:
        _pool.append(wait_for(create_pool(ADDRESS)))
    wait_for(_pool[0].enqueue_job("nothing", about))


def commands(processes: int) -> list[list[str]]:
    """Return a command per process."""
    imports = "from arq import run_worker; from benchmarks.support.peers.with_arq import WorkerSettings"
    return [[sys.executable, "-c", f"{imports}; run_worker(WorkerSettings)"] for _ in range(processes)]
