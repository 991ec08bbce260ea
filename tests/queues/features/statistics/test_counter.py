"""What a worker process counts of the attempts of tasks."""

from redis_kit.queues import task
from redis_kit.queues.inspection import task_stats
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess


@task(queue_name="mail", max_attempts=1)
def work(*, fail: bool = False) -> None:
    """Fail on request."""
    if fail:
        raise ValueError("no")


def test_worker_counts_attempts(kit):
    for fail in (False, False, True):
        work.enqueue(fail=fail)
    assert WorkerProcess(Options(("mail",), threads=1, burst=True)).run() == 0
    stats = task_stats("mail")[f"{__name__}.work"]
    assert (stats.runs, stats.failures) == (3, 1)
