"""The outbox: calls are stored in the project's database, in its transaction, until Redis has them."""

from collections.abc import Iterable, Iterator
from typing import Any

from redis_kit.queues.engine.feature import Duty, Feature, Process


class Outbox(Feature):
    """Tasks with an outbox are sent through the database, and worker processes send what is left there."""

    name = "outbox"
    provides = {"transport": "redis_kit.queues.features.outbox.transport"}

    def process_duties(self, process: Process) -> Iterable[Duty]:
        """Return the relay, if a task of this process has an outbox."""
        from redis_kit.queues.features.outbox import store

        aliases = store.aliases()
        if not aliases:
            return ()
        from redis_kit.queues.features.outbox.relay import OutboxRelay

        def report(seconds: float) -> None:
            process.report("waits", "a call waits in the outbox", f"{seconds:.1f}")

        return (OutboxRelay(aliases, process.sources[0], process.worker, report),)

    def queue_figures(self) -> Iterator[Any]:
        """Yield how many calls wait in each outbox of the tasks that this process knows. Two statements for each."""
        from redis_kit.queues.features.outbox import figures

        return figures.waiting_calls()
