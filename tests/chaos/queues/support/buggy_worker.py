"""A worker with a bug: ``python -m tests.chaos.queues.support.buggy_worker BUG --threads 1``. The checker must find it.

It does what a worker does, with one thread and the public queue: claim, call the task, acknowledge, send heartbeats.
Queues have had all of these bugs.
"""

import argparse
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import django
from django.conf import settings

from redis_kit.core.flow import Flow
from redis_kit.core.steps import Call
from redis_kit.queues import LeaseLost, Queue
from redis_kit.queues.engine import message
from redis_kit.queues.engine.job import Job
from redis_kit.queues.tasks import discovery, registry

Work = Callable[[Queue, Job], None]
BUGS: dict[str, Work] = {}
stopping = threading.Event()


def bug(work: Work) -> Work:
    """Note a way to do a job."""
    BUGS[work.__name__] = work
    return work


@bug
def none(queue: Queue, job: Job) -> None:
    """Do the job and ack it."""
    call(job)
    with suppress(LeaseLost):
        queue.ack(job)


@bug
def ack_first(queue: Queue, job: Job) -> None:
    """Ack before the job is done."""
    queue.ack(job)
    call(job)


@bug
def pop(queue: Queue, job: Job) -> None:
    """Do a job that was taken out of the queue."""
    call(job)


@bug
def ack_twice(queue: Queue, job: Job) -> None:
    """Count an outcome again when it is repeated."""
    none(queue, job)
    field = max(int(field) for field in queue.run_flow(ask("HKEYS", queue.key("minutes"))) if int(field) % 4 == 0)
    queue.run_flow(ask("HINCRBY", queue.key("minutes"), field, 1))


@bug
def do_twice(queue: Queue, job: Job) -> None:
    """Do every tenth job twice, as a client does that repeats what it got no answer to."""
    if number(job) % 10 == 0:
        call(job)
    none(queue, job)


@bug
def drop_outcome(queue: Queue, job: Job) -> None:
    """Forget to ack every tenth job."""
    if number(job) % 10 == 0:
        call(job)
    else:
        none(queue, job)


@bug
def late_lease(queue: Queue, job: Job) -> None:
    """Wait for too long until a silent worker counts as dead."""
    none(queue, job)


@bug
def poison_at_once(queue: Queue, job: Job) -> None:
    """Give up a job with the first worker that dies."""
    none(queue, job)


def number(job: Job) -> int:
    """Return what the job was sent as."""
    found: int = message.loads(job.body).args[0]
    return found


def call(job: Job) -> None:
    """Call the task."""
    found = message.loads(job.body)
    registry.find(found.task).func(*found.args, **found.kwargs)


def ask(*command: Any) -> Flow[Any]:
    """Send a bare command."""
    return (yield Call(*command))


def claimed(queue: Queue) -> Iterator[Job]:
    """Claim jobs until TERM."""
    while not stopping.wait(0.001):
        yield from queue.claim(1)


def popped(queue: Queue) -> Iterator[Job]:
    """Take jobs out until TERM."""
    while not stopping.wait(0.001):
        for id in queue.run_flow(ask("ZPOPMIN", queue.key("ready")))[:1]:
            record = queue.run_flow(ask("HGET", queue.key("jobs"), id))
            queue.run_flow(ask("HDEL", queue.key("jobs"), id))
            yield Job(id.decode(), record.partition(b"\n")[2], "")


def beat(queue: Queue) -> None:
    """Beat until TERM."""
    while not stopping.wait(settings.REDIS_KIT["QUEUES"]["HEARTBEAT_INTERVAL"]):
        queue.heartbeat()


def main() -> int:
    """Work until TERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("bug", choices=BUGS)
    parser.add_argument("--threads", type=int)
    chosen = parser.parse_args().bug
    options = settings.REDIS_KIT["QUEUES"]  # nobody has read it yet
    if chosen == "late_lease":
        options["WORKER_TIMEOUT"] *= 10
    if chosen == "poison_at_once":
        options["MAX_CRASHES"] = 1
    django.setup()
    discovery.discover()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    queue = Queue("default")
    threading.Thread(target=beat, args=(queue,), daemon=True).start()
    for job in popped(queue) if chosen == "pop" else claimed(queue):
        BUGS[chosen](queue, job)
    queue.sign_off()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
