"""Duties of a supervisor without the supervisor around them."""

from collections.abc import Sequence

from redis_kit.core.errors import RedisFailure
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.queues.worker.supervisor.child import Child
from redis_kit.queues.worker.supervisor.heartbeat import Heartbeat
from redis_kit.queues.worker.supervisor.supervisor import Sweep


class Parent:
    """A supervisor as its heartbeat sees it. It notes the commands."""

    def __init__(self, children: Sequence[Child]) -> None:
        self.children = list(children)
        self.queues = children[0].sources if children else []
        self.quiet = self.stopping = False
        self.commands: list[str] = []

    def execute(self, command: str) -> None:
        """Note a command."""
        self.commands.append(command)


def heartbeat(*children: Child, reports: bool = False) -> Heartbeat:
    """Return the heartbeat of children."""
    return Heartbeat(Parent(children), reports=reports)


def sweep(*queues: WorkerQueue) -> dict[str, RedisFailure]:
    """Sweep queues, and return the errors."""
    errors: dict[str, RedisFailure] = {}
    Sweep(queues, errors.update).run()
    return errors
