"""Runs jobs in a test's own thread, as a worker would."""

from threading import Event

from redis_kit.queues import identity
from redis_kit.queues.worker.deadlines import Deadlines
from redis_kit.queues.worker.processor import Processor
from redis_kit.queues.worker.source import Source


def drain(*names: str) -> int:
    """Run the ready jobs of some queues, ``default`` where none is named, until none is left; return how many ran.

    A job that a job enqueues is run too. One that fails is retried or buried as by a worker; one that is delayed, a
    retry with its backoff among them, stays. Timeouts of tasks are not enforced.
    """
    worker, processor, count = identity.new_worker(), Processor(Deadlines(), given_up=Event()), 0
    sources = [Source(name, worker=worker, about=identity.information()) for name in names or ("default",)]
    while jobs := [(source, job) for source in sources for job in source.claim(1, worker=worker)]:
        for source, job in jobs:
            processor.run(source, job)
        count += len(jobs)
    for source in sources:
        source.leave(worker=worker)
    return count
