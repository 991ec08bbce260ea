"""The outbox: calls are stored in the project's database, in its transaction, until Redis has them."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.utils import timezone
from django.utils.connection import ConnectionDoesNotExist
from django.utils.translation import gettext as _

from redis_kit.core.panels import Figure
from redis_kit.queues import framework
from redis_kit.queues.engine.feature import Duty, Feature, Process

OVERDUE = timedelta(minutes=1)  # for a call


class Outbox(Feature):
    """Tasks with an outbox are sent through the database, and worker processes send what is left there."""

    name = "outbox"
    provides = {"transport": "redis_kit.queues.features.outbox.transport"}

    def process_duties(self, process: Process) -> Iterable[Duty]:
        """Return the relay, if a task of this process has an outbox."""
        from redis_kit.queues.features.outbox.transport import aliases

        if not aliases():
            return ()
        from redis_kit.queues.features.outbox.relay import OutboxRelay

        def report(seconds: float) -> None:
            process.report("waits", "a call waits in the outbox", f"{seconds:.1f}")

        return (OutboxRelay(aliases(), process.sources[0], process.worker, report),)

    def queue_figures(self) -> Iterator[Any]:
        """Yield how many calls wait in each outbox of the tasks that this process knows. Two statements for each."""
        if not framework.FOUND:
            return
        from redis_kit.queues.features.outbox.transport import aliases, waiting

        for alias in aliases():
            title = _("Outbox (%s)") % alias
            try:
                with transaction.atomic(using=alias):
                    count, oldest = waiting(alias)
            except (DatabaseError, ConnectionDoesNotExist) as error:
                yield Figure(title, None, hint=str(error), alarm=True)
                continue
            age = timezone.now() - oldest if oldest else timedelta(0)
            hint = _("The oldest call has waited for %d s. A worker sends them.") % age.total_seconds()
            yield Figure(title, count, hint=hint if oldest else "", alarm=age > OVERDUE)
