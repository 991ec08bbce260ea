"""The duty of unknown calls: jobs that other workers could not run are ready again where this one can."""

import logging
import sys
from collections import defaultdict
from collections.abc import Callable
from math import inf

from redis_kit.core import conf
from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import single
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch
from redis_kit.core.terminal import rounded_duration
from redis_kit.queues.engine import message
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.engine.liveness import HeartbeatReply
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import UnknownTask
from redis_kit.queues.reports import unknown_calls
from redis_kit.queues.reports.unknown_calls import UnknownCalls
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.tasks import discovery, registry

logger = logging.getLogger("redis_kit.worker")
RECALL = QueueScript("recall", __package__)
RECALLED = 500  # jobs made ready in a second
RESTART = "restart this worker with the new code (or use --reload)"
UNFIT = f"{RESTART}, or give new parameters a default"


class Recall:
    """Makes jobs ready that other workers could not run and this one can. It warns of the others.

    ``wake`` is called with the names of the queues in which jobs are ready again: a wake-up on the server may go to
    workers that can't run them, again and again.
    """

    def __init__(self, wake: Callable[[set[str]], object]) -> None:
        self.due = inf
        self._wake = wake
        self._reported: dict[tuple[str, str], Primitive] = {}  # queues by name and shape of call
        self._log_limit = LogRateLimit()

    def heard(self, queue: Primitive, reply: HeartbeatReply) -> None:
        """Take the shapes of calls that a queue reports. They are recalled with the next run."""
        for shape in reply.unknown:
            self._reported[queue.name, shape] = queue
            self.due = 0.0

    def run(self) -> None:
        """Recall what was reported. One round trip, on a Cluster one per node."""
        calls = [(queue, shape) for (_, shape), queue in self._reported.items()]
        self.due = inf
        self._reported = {}
        if not calls:
            return
        steps = [
            RECALL(queue.key(""), digest := unknown_calls.digest(shape), int(can_run(shape)), RECALLED, job=digest)
            for queue, shape in calls
        ]
        replies = calls[0][0].run_flow(single(Batch(steps, lenient=True)))
        ready: set[str] = set()
        waiting: defaultdict[tuple[str, str], list[UnknownCalls]] = defaultdict(list)
        for (queue, shape), reply in zip(calls, replies, strict=True):
            if isinstance(reply, RedisFailure) or not reply:
                continue  # the heartbeat logs errors of a queue
            moved, *numbers = reply
            unknown = unknown_calls.calls_of(shape.encode(), *numbers)
            if moved:
                ready.add(queue.name)
                jobs = "1 job" if moved == 1 else f"{moved} jobs"
                text = "Queue %a: %s of %a, returned by other workers, can run here."
                logger.info(text, queue.name, jobs, unknown.call)
            if not can_run(shape) and unknown.jobs and not unknown.known:
                waiting[queue.name, unknown.task].append(unknown)
        for (name, task), several in waiting.items():
            if self._log_limit.allows(f"{name} {task}"):
                _warn(name, several)
        if ready:
            self._wake(ready)


def _warn(queue: str, calls: list[UnknownCalls]) -> None:
    """Log, once a minute for each task, the jobs that wait and a remedy."""
    task = calls[0].task
    jobs = sum(call.jobs for call in calls)
    age = max(call.age for call in calls)
    first = "1 job" if jobs == 1 else f"{jobs} jobs wait; the first"
    left = max(0.0, conf.section(QueueSettings).UNKNOWN_TASK_TTL - age)
    remedy = UNFIT if registry.is_registered(task) else remedy_for(task)
    text = "Queue %a: no living worker can run %a: %s has waited for %s and will be dead in %s if no worker can run it."
    durations = rounded_duration(age), rounded_duration(left)
    logger.warning(f"{text} To run it, %s.", queue, calls[0].call, first, *durations, remedy)


def remedy_for(task: str) -> str:
    """Return what lets a worker run a task that it does not know."""
    if ".management.commands.shell" in task:
        return "define it in a module, such as tasks.py: it was defined in the shell"
    module = task.rpartition(".")[0]
    if module in sys.modules or discovery.is_of_app(module):
        return f"{RESTART}, or keep the old name of the task"
    name = ascii(module) if module else "its module"
    return f"add {name} to REDIS_KIT['QUEUES']['IMPORTS'], deploy this worker, or keep the old name of the task"


def can_run(shape: str) -> bool:
    """Return whether this process can run calls of a shape."""
    match unknown_calls.parts(shape):
        case (None, version):
            return message.reads(version)
        case (str(name), int(count), *names):
            try:
                registry.find_for(Message(name, [None] * count, dict.fromkeys(names)))
            except UnknownTask:
                return False
            return True
    return False
