"""Every call on a queue, for tests that damage its keys."""

from collections.abc import Callable, Iterator

from redis_kit.queues import Job, Queue
from redis_kit.queues.engine.done import ack_of
from redis_kit.queues.inspection import list_workers, lost_workers, queue_names, queue_stats
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from tests.queues.support.duties import sweep


def calls(queue: Queue, source: WorkerQueue, job: Job) -> Iterator[Callable[[], object]]:
    """Return what a caller, a worker and the dashboard do with a queue."""
    yield lambda: queue.put(1, delay=0.001)
    yield lambda: queue.put(1, id="x")
    yield lambda: queue.claim(5, worker="w")
    yield lambda: queue.ack(job)
    yield lambda: queue.nack(job, delay=0.001)
    yield lambda: queue.nack(job, max_attempts=1)
    yield lambda: source.exchange(5, [ack_of(job, b"1", 1000, source=0)])
    yield lambda: source.exchange(0)
    yield lambda: source.put_back([b"w/c.1/nan/x", b"w/c.1/0/y", b"w/", b""])
    yield lambda: sweep(source)
    yield lambda: queue.heartbeat(worker="w")
    yield lambda: queue.sign_off(worker="w")
    yield lambda: queue.get(job.id)
    yield lambda: queue.delete("x")
    yield lambda: queue.run_now("x")
    yield lambda: queue.requeue(limit=5)
    yield lambda: queue.resume()
    yield lambda: queue.paused()
    yield lambda: [queue.peek(10, state=state) for state in ("ready", "scheduled", "running", "dead")]
    yield lambda: queue.peek(state="dead")
    yield lambda: queue.counts()
    yield lambda: (queue_names(), queue_stats([queue.name]), list_workers([queue.name]))
    yield lambda: lost_workers([queue.name])
