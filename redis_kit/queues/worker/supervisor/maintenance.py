"""Repairs of queues with each heartbeat: orphaned jobs, and jobs that other workers could not run."""

import logging
import sys
from collections import defaultdict
from collections.abc import Iterable
from time import monotonic

from redis_kit.core import conf
from redis_kit.core.errors import RedisFailure
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.store.unknown_calls import UnknownCalls
from redis_kit.queues.tasks import discovery, registry
from redis_kit.queues.worker.shared.logs import counted, lasting
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue, recall, sweep

logger = logging.getLogger("redis_kit.worker")
EVERY = 15.0  # seconds between two looks at each queue
NAMED = 5  # jobs in one line of the log
RESTART = "restart this worker with the new code (or use --reload)"
UNFIT = f"{RESTART}, or give new parameters a default"


class Recaller:
    """Makes jobs ready that other workers could not run and this one can. It warns of the others."""

    def __init__(self) -> None:
        self._log_limit = LogRateLimit()

    def see_to(self, reported: Iterable[tuple[WorkerQueue, list[str]]]) -> set[str]:
        """Take the shapes of calls that each queue reports. One round trip if there are any, else none.

        Returns the names of the queues in which jobs are ready again. The caller wakes its own processes: a wake-up on
        the server may go to workers that can't run them, again and again.
        """
        pairs = {(source.name, shape): source for source, shapes in reported for shape in shapes}
        if not pairs:
            return set()
        shapes_asked = [(source, shape) for (_, shape), source in pairs.items()]
        replies, ready = recall(shapes_asked), set()
        waiting: defaultdict[tuple[str, str], list[UnknownCalls]] = defaultdict(list)
        for (source, shape), reply in zip(shapes_asked, replies, strict=True):
            if isinstance(reply, RedisFailure) or reply is None:
                continue  # the heartbeat logs errors of a queue
            if reply.moved:
                ready.add(source.name)
                details = counted(reply.moved, "job"), reply.waiting.call
                logger.info("Queue %a: %s of %a, returned by other workers, can run here.", source.name, *details)
            if not registry.can_run(shape) and reply.waiting.jobs and not reply.waiting.known:
                waiting[source.name, reply.waiting.task].append(reply.waiting)
        for (queue, task), several in waiting.items():
            if self._log_limit.allows(f"{queue} {task}"):
                _warn(queue, several)
        return ready


def _warn(queue: str, calls: list[UnknownCalls]) -> None:
    """Log, once a minute for each task, the jobs that wait and a remedy."""
    shown, jobs = calls[0].call, sum(call.jobs for call in calls)
    task = calls[0].task
    advice = UNFIT if registry.is_registered(task) else _unknown(task)
    end = conf.section(QueueSettings).UNKNOWN_TASK_TTL
    first, age = "1 job" if jobs == 1 else f"{jobs} jobs wait; the first", max(call.age for call in calls)
    text = "Queue %a: no living worker can run %a: %s has waited for %s and will be dead in %s if no worker can run it."
    logger.warning(f"{text} To run it, %s.", queue, shown, first, lasting(age), lasting(max(0.0, end - age)), advice)


def _unknown(task: str) -> str:
    if discovery.SHELL in task:
        return "define it in a module, such as tasks.py: it was defined in the shell"
    module = task.rpartition(".")[0]
    if module in sys.modules or discovery.is_of_app(module):
        return f"{RESTART}, or keep the old name of the task"
    shown = ascii(module) if module else "its module"
    return f"add {shown} to REDIS_KIT['QUEUES']['IMPORTS'], deploy this worker, or keep the old name of the task"


class Orphans:
    """Looks for jobs that no state leads to, as after a damaged key was deleted: at 200 of each queue, by chance."""

    def __init__(self) -> None:
        self._at = 0.0
        self._wrong: dict[str, RedisFailure] = {}

    def look(self, sources: list[WorkerQueue]) -> dict[str, RedisFailure]:
        """Make orphaned jobs ready; return the errors of queues. One round trip every 15 s, else none."""
        if monotonic() < self._at:
            return self._wrong
        self._at = monotonic() + EVERY
        answers = dict(zip([source.name for source in sources], sweep(sources), strict=True))
        for name, orphans in answers.items():
            if orphans and not isinstance(orphans, RedisFailure):
                names = ", ".join(ascii(id.decode("utf-8", "backslashreplace")) for id in orphans[:NAMED])
                count = counted(len(orphans), "job")
                logger.error("Queue %a: %s in no state made ready, such as %s.", name, count, names)
        self._wrong = {name: orphans for name, orphans in answers.items() if isinstance(orphans, RedisFailure)}
        return self._wrong
